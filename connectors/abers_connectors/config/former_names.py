"""Names of keys and values before the first release.

An error suggests the new name, because similarity does not find it.
"""

from __future__ import annotations

__all__ = ["FORMER_NAMES"]

FORMER_NAMES = {
    "alarm_distance": "average_run_length",
    "alarm_quiet": "cooldown",
    "app": "application_id",
    "bootstrap": "bootstrap_servers",
    "dedup_for": "dedup_ttl",
    "every": "snapshot_every",
    "extra": "passthrough",
    "instance": "group_instance_id",
    "judged": "scored",
    "keep": "retain",
    "label_wait": "label_timeout",
    "lateness": "allowed_lateness",
    "leave_on_stop": "leave_group_on_close",
    "linger": "commit_interval",
    "lost_history": "on_offset_out_of_range",
    "max_ahead": "max_clock_skew",
    "max_dead_per_1000": "max_dead_letter_ratio",
    "positive": "pos_label",
    "start": "starting_offset",
    "tests_after": "grace_period",
    "thresholds": "grid",
    "told": "full",
    "uncalibrated": "none",
    "watchdog": "stall_timeout",
}
