"""`abers replay` and `abers report`."""

from __future__ import annotations

from typing import Annotated

import typer

from abers_connectors.cli.options import (
    DelayOption,
    JsonTable,
    Models,
    PositiveOption,
    ProbabilityOption,
    Quiet,
    ScoresOption,
    SinceOption,
    TaskOption,
    TimezoneOption,
    UntilOption,
    Verbose,
    calibrator_option,
    declared_option,
    detail_of,
    input_option,
    output_option,
    time_option,
    whole_number,
)
from abers_connectors.errors import CONFIG, USAGE, fail, sentences

__all__ = ["replay", "report"]

# ruff: noqa: PLC0415 - a command imports what it needs when it runs, and typer the types
# Annotations are no texts: typer would compile each of them, in every command.


def replay(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="A built-in river dataset (binary: Bananas, Phishing, Shuttle; multiclass: "
            "ImageSegments; regression: AirlinePassengers, ChickWeights, SP500Stocks, "
            "TrumpApproval, WaterFlow), a file of scores and labels (.csv, .tsv, .jsonl or "
            ".ndjson, also with .gz or .zst, or .parquet), a folder, pattern or URL of Parquet "
            "files, a table of Delta Lake or Iceberg (docs/datasets.md), or a configuration "
            "(.toml).",
        ),
    ],
    *,
    from_: Annotated[
        str | None,
        input_option(
            "FILE",
            "With a configuration: read this file instead of its input. With topics: read this "
            "topic instead of the observations, or `changelog` for what the service wrote.",
            "--from",
        ),
    ] = None,
    score: Annotated[
        str | None,
        declared_option(
            "--score",
            more="A column of a file (default score, prob, y_prob, …). Several classes: one each, "
            "as in low=p_low,mid=p_mid,high=p_high; the label column has the class.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        declared_option(
            "--label",
            more="A column of a file (default label, y_true, target, …): 0 or 1, false or true, or "
            "numbers; see --positive for text.",
        ),
    ] = None,
    id_: Annotated[
        str | None,
        declared_option("--id", more="Default: id, or else the row number."),
    ] = None,
    time: Annotated[
        str | None,
        declared_option("--time", more="Default: time, timestamp, …, or else the row number."),
    ] = None,
    label_time: Annotated[
        str | None,
        declared_option("--label-time"),
    ] = None,
    positive: PositiveOption = None,
    model_column: Annotated[
        str | None,
        declared_option("--model-column", more="Default: model, if there is one."),
    ] = None,
    segment_column: Annotated[
        str | None,
        declared_option("--segment-column", more="Default: segment, if there is one."),
    ] = None,
    labels: Annotated[
        str | None,
        declared_option(
            "--labels",
            more="Joined by an id column that both have, each label known at the time of its row. "
            "--label and --label-time name its columns.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        declared_option(
            "--delimiter", more='Write "," ";" "|" or tab. Default: as in the first line.'
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        declared_option("--decimal", more="Default: as found."),
    ] = None,
    timezone: TimezoneOption = None,
    task: TaskOption = None,
    scores: ScoresOption = None,
    learner: Annotated[
        str | None,
        declared_option(
            "--learner",
            more="For data sets. Classes: bayes, forest, logistic (default for two), softmax "
            "(default for several), tree. Numbers: forest, linear (default), tree. Or the full "
            "name of a river class.",
        ),
    ] = None,
    calibrator: Annotated[
        str | None,
        declared_option(
            "--calibrator",
            more="Binary: ivap, cvap, protected, protected-cvap, platt, isotonic, dir, beta, none. "
            "Multiclass: one-vs-rest, one-vs-one, protected, none. Regression: ivapr, protected. "
            "none serves the scores as they are.",
        ),
    ] = None,
    probability: ProbabilityOption = None,
    window: Annotated[
        str | None,
        declared_option("--window"),
    ] = None,
    max_age: Annotated[
        str | None,
        declared_option("--max-age", more='For example "7d" or "5000ms".'),
    ] = None,
    half_life: Annotated[
        str | None,
        declared_option("--half-life"),
    ] = None,
    distributions: Annotated[
        bool,
        declared_option("--distributions", more="The flag asks for all."),
    ] = False,
    support: Annotated[
        tuple[str, str] | None,
        declared_option("--support", more="Protected numbers need them."),
    ] = None,
    label_rates: Annotated[
        tuple[str, str] | None,
        declared_option("--label-rates", more="For ivap with merged probabilities."),
    ] = None,
    coverage: Annotated[
        str | None,
        declared_option("--coverage", more="For numbers, by ivapr or protected."),
    ] = None,
    compare: Annotated[
        str | None,
        calibrator_option(
            "NAMES",
            "Run several calibrators, separated by commas, and print one table instead of writing "
            "outputs. ivap, cvap and one-vs-rest are merged in it.",
        ),
    ] = None,
    delay: DelayOption = None,
    delays: Annotated[
        str | None,
        time_option(
            "DELAYS",
            "Replay once for each delay, separated by commas, such as 0,50,6h, and print one table "
            "instead of writing outputs.",
        ),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    model: Models = None,
    workers: Annotated[
        int,
        input_option(
            "N",
            "Share the models out among N processes. The outputs are the same.",
            "--workers",
            parser=whole_number(1, 256),
        ),
    ] = 1,
    speed: Annotated[
        str,
        time_option("N", "1x for the original speed, 10x for ten times that, max for no waiting."),
    ] = "max",
    output: Annotated[
        str | None,
        declared_option(
            "--output",
            "-o",
            more="JSON Lines, CSV or Parquet by the suffix; - (the default with topics) is "
            "standard output. It appears when it is complete. With topics also kafka:TOPIC.",
        ),
    ] = None,
    report: Annotated[
        str | None,
        output_option(
            "FILE", "Write a report: a self-contained page (.html), or its numbers (.json)."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        output_option(
            "START..END",
            "Show the predictions of this time too, in the report and the live page. "
            "Times as of --since.",
        ),
    ] = None,
    live: Annotated[
        bool,
        output_option(
            None, "Show progress on a local web page until Ctrl-C; see --speed.", "--live"
        ),
    ] = False,
    save_state: Annotated[
        str | None,
        output_option(
            "URL", "With topics: save the final state and offsets for abers run --initial-state."
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: JsonTable = False,
) -> None:
    """Replay a stream: predict, wait for the label, and learn.

    Every observation is scored and calibrated before its label is known. The answers are
    about these predictions as they were issued.
    """
    columns = {
        "score": score,
        "label": label,
        "id": id_,
        "time": time,
        "label_time": label_time,
        "model": model_column,
        "segment": segment_column,
    }
    with sentences():
        from abers_connectors.replay.options import ReplayOptions, has_topics
        from abers_connectors.replay.plan import plan_replay, require_table_alone

        detail = detail_of(quiet=quiet, verbose=verbose)
        options = ReplayOptions(
            stream=stream,
            delay=delay,
            output=output,
            learner=learner,
            columns=columns,
            labels=labels,
            delimiter=delimiter,
            decimal=decimal,
            scores=scores,
            task=task,
            positive=positive or (),
            timezone=timezone,
            calibrator=calibrator,
            probability=probability,
            distributions=distributions,
            support=support,
            label_rates=label_rates,
            coverage=coverage,
            forgetting={"window": window, "max_age": max_age, "half_life": half_life},
            from_=from_,
            since=since,
            until=until,
            models=model or (),
            speed=speed,
            compare=compare,
            report=report,
            reference=reference,
            live=live,
            save_state=save_state,
            workers=workers,
        )
        if has_topics(options):
            from abers_connectors.kafka.topic_replay import replay as replay_topics

            replay_topics(options, as_json=as_json, detail=detail)
            return
        if delays is not None:
            require_table_alone("delays", options)
    with sentences():
        plan = plan_replay(options, writes=delays is None)
    parameter = CONFIG if options.configured and compare is None else USAGE
    with sentences(parameter):
        from abers_connectors import terminal
        from abers_connectors.cli.replay import compare_calibrators, compare_delays, run_job
        from abers_connectors.replay.plan import Said, next_steps

        said = Said() if as_json or quiet else plan.said
        if delays is not None:
            compare_delays(options, delays, as_json=as_json, said=said)
            return
        if compare is not None:
            compare_calibrators(
                plan.job,
                compare,
                stream,
                as_json=as_json,
                delay=plan.delay,
                report=report,
                reference=plan.reference,
                said=said,
            )
            return
        run_job(
            plan.job,
            stream,
            pace=plan.pace,
            delay=plan.delay,
            report=report,
            live=live,
            reference=plan.reference,
            as_json=as_json,
            detail=detail,
            said=said,
        )
        if not as_json and not quiet and not options.configured:
            terminal.show_next(next_steps(options, plan))


# ruff: noqa: PLC0415 - a command imports what it needs when it runs, and typer the types
# Annotations are no texts: typer would compile each of them, in every command.


def report(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(metavar="STREAM|FILE|CONFIG", help="The input, as for abers replay."),
    ],
    *,
    positive: PositiveOption = None,
    timezone: TimezoneOption = None,
    task: TaskOption = None,
    scores: ScoresOption = None,
    probability: ProbabilityOption = None,
    delay: DelayOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reference: Annotated[
        str | None,
        output_option("START..END", "Show the predictions of this time too. Times as of --since."),
    ] = None,
    output: Annotated[
        str,
        output_option(
            "FILE",
            "The report: a self-contained page (.html), or its numbers (.json).",
            "--output",
            "-o",
        ),
    ] = "report.html",
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: JsonTable = False,
) -> None:
    """Replay a stream only for its report, as a page or JSON.

    No predictions are written. For columns, learners and forgetting: abers replay --report.
    """
    with sentences():
        from abers_connectors.replay.options import ReplayOptions, has_topics, report_format
        from abers_connectors.replay.plan import Said, plan_replay

        detail = detail_of(quiet=quiet, verbose=verbose)
        report_format(output, "--output")  # raises for an unknown one
        options = ReplayOptions(
            stream=stream,
            delay=delay,
            output="-",  # unused: the job has no outputs
            positive=positive or (),
            timezone=timezone,
            task=task,
            scores=scores,
            probability=probability,
            since=since,
            until=until,
            report=output,
            reference=reference,
        )
        if has_topics(options):
            fail(f"a report reads files, and {stream} has topics", USAGE)
    with sentences():
        plan = plan_replay(options)
    with sentences(CONFIG if options.configured else USAGE):
        from abers_connectors.cli.replay import run_job

        job = plan.job._replace(outputs={})
        run_job(
            job,
            stream,
            delay=plan.delay,
            report=output,
            reference=plan.reference,
            as_json=as_json,
            detail=detail,
            said=Said() if as_json or quiet else plan.said,
        )
