"""`abers replay`."""

# ruff: noqa: PLC0415 - a command imports what it needs when it runs, and typer the types
# Annotations are no texts: typer would compile each of them, in every command.

from typing import Annotated

import typer

from abers_connectors.cli.options import (
    JsonTable,
    Models,
    Quiet,
    Verbose,
    calibrator_option,
    detail_of,
    input_option,
    output_option,
    time_option,
)
from abers_connectors.cli.stream_options import (
    DelayOption,
    ProbabilityOption,
    ScoresOption,
    SinceOption,
    TaskOption,
    UntilOption,
)
from abers_connectors.exit_codes import CONFIG, USAGE, sentences

__all__ = ["replay"]


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
        input_option(
            "COLUMN",
            "Score column of a file (default score, prob, y_prob, …). Several classes: one each, "
            "as in low=p_low,mid=p_mid,high=p_high; the label column has the class.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        input_option(
            "COLUMN",
            "Label column of a file (default label, y_true, target, …): 0 or 1, false or true, "
            "or numbers; see --positive for text.",
        ),
    ] = None,
    id_: Annotated[
        str | None,
        input_option("COLUMN", "Id column of a file (default id, or else the row number).", "--id"),
    ] = None,
    time: Annotated[
        str | None,
        input_option(
            "COLUMN",
            "Event time column of a file, in milliseconds or RFC 3339 (default time, timestamp, …, "
            "or else the row number).",
        ),
    ] = None,
    label_time: Annotated[
        str | None,
        input_option("COLUMN", "Column of a file with the time at which the label became known."),
    ] = None,
    positive: Annotated[
        list[str] | None,
        input_option("LABEL", "Label that means 1; all others mean 0. May be given several times."),
    ] = None,
    model_column: Annotated[
        str | None,
        input_option("COLUMN", "Model column of a file (default model, if there is one)."),
    ] = None,
    segment_column: Annotated[
        str | None,
        input_option("COLUMN", "Segment column of a file (default segment, if there is one)."),
    ] = None,
    labels: Annotated[
        str | None,
        input_option(
            "FILE",
            "A second file, of labels: joined by an id column that both have, each known at the "
            "time of its row. --label and --label-time name its columns.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        input_option(
            "CHARACTER",
            'What separates the fields of CSV: "," ";" "|" or tab (default as in the first line).',
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        input_option("CHARACTER", 'What precedes decimals in CSV, "." or "," (default as found).'),
    ] = None,
    timezone: Annotated[
        str | None,
        input_option(
            "ZONE",
            'Time zone of times without an offset, such as "2013-04-01 05:00:00": a name such as '
            '"Europe/Berlin" or "UTC".',
        ),
    ] = None,
    task: TaskOption = None,
    scores: ScoresOption = None,
    learner: Annotated[
        str | None,
        input_option(
            "NAME",
            "Learner that scores the standardised features of a dataset. For classes: bayes, "
            "forest, logistic (default for two), softmax (default for several), tree. For "
            "numbers: forest, linear (default), tree. Or the full name of a river class.",
        ),
    ] = None,
    calibrator: Annotated[
        str | None,
        calibrator_option(
            "NAME",
            "Calibrator. Binary: ivap (default), cvap, protected, protected-cvap, platt, isotonic, "
            "dir, beta, none. "
            "Multiclass: one-vs-rest (default), one-vs-one, protected, none. "
            "Regression: ivapr (default), protected. none serves the scores as they are.",
        ),
    ] = None,
    probability: ProbabilityOption = None,
    window: Annotated[
        int | None, calibrator_option("N", "Calibrate on the last N labels only.")
    ] = None,
    max_age: Annotated[
        str | None,
        calibrator_option("SPAN", 'Forget labels older than SPAN, such as "7d" or "5000ms".'),
    ] = None,
    half_life: Annotated[
        str | None, calibrator_option("SPAN", "Halve the weight of a label every SPAN.")
    ] = None,
    distributions: Annotated[
        bool,
        calibrator_option(
            None,
            "Write the whole predictive distributions of a regression, not only quantiles.",
            "--distributions",
        ),
    ] = False,
    support: Annotated[
        tuple[float, float] | None,
        calibrator_option(
            "LOW HIGH",
            "Smallest and largest possible label of a regression; protected needs them.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        calibrator_option(
            "LEVEL",
            "With protected numbers: also predict an interval that covers this share of the "
            "labels, with a bound on any stream.",
        ),
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
            min=1,
            max=256,
        ),
    ] = 1,
    speed: Annotated[
        str,
        time_option("N", "1x for the original speed, 10x for ten times that, max for no waiting."),
    ] = "max",
    output: Annotated[
        str | None,
        output_option(
            "FILE",
            "Write the predictions, as JSON Lines, CSV or Parquet by the suffix; - (the default "
            "with topics) is standard output. A file appears when it is complete. With topics also "
            "kafka:TOPIC.",
            "--output",
            "-o",
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
    """Replay a historical stream: predict, wait for the label, learn.

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
        from abers_connectors.replay.defaults import as_option
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
    reword = str if options.configured else as_option
    with sentences(reword=reword):
        plan = plan_replay(options)
    parameter = CONFIG if options.configured and compare is None else USAGE
    with sentences(parameter, reword=reword):
        from abers_connectors import terminal
        from abers_connectors.cli.replay import compare_calibrators, compare_delays, run_job
        from abers_connectors.replay.next_steps import next_steps
        from abers_connectors.replay.plan import Said

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
