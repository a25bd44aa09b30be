"""Attack `abers serve`, and print what was left.

python -m tests.connectors.serve.chaos {short|long} FOLDER [SEED]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.connectors.serve.chaos.campaign import Campaign

KILLS = {"short": 10, "long": 200}
_ROUND, _DISK = 10, 100  # kills


def main(form: str, folder: str, seed: str = "7") -> None:
    """Run the campaign in one of its forms."""
    began, campaign = time.monotonic(), Campaign(Path(folder), int(seed))
    for kill in range(KILLS[form]):
        campaign.set_clock()
        (campaign.kill_early if kill % _ROUND == _ROUND // 2 else campaign.kill)()
        if kill % _ROUND == 2:
            campaign.second()
        if kill % _DISK == _ROUND // 2 - 1:
            campaign.fill_disk()
    found = campaign.checked()
    counted = ", ".join(f"{count:,} {what}" for what, count in campaign.ledger.done.items())
    print(  # noqa: T201 - the summary is what the suite is for
        f"chaos: {counted}\nchaos: {found.events:,} events, {found.predictions:,} predictions, "
        f"{found.labels:,} labels, lost {found.lost}, duplicates {found.duplicates}, state equal, "
        f"accounts close, {time.monotonic() - began:.0f} s"
    )
    assert not found.lost + found.duplicates


if __name__ == "__main__":
    main(*sys.argv[1:])
