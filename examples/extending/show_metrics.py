"""Show what Prometheus scrapes of the monitor, from a stream of eight events."""

from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.metrics.exposition import exposition
from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.application import Checkpoint
from abers_connectors.runtime.status import Status
from abers_connectors.runtime.task import StreamTask

processor = Processor(Settings())
for n in range(8):
    processor.process(Observation(f"a{n}", n, model="fraud", score=n / 8))
    processor.process(Label(f"a{n}", n, model="fraud", value=int(n % 4 == 0)))
status = Status(stall_timeout=60.0)
status.update_evidence([StreamTask(processor, Checkpoint("app", 0, 0, 0, (0, 0)))])
text, _ = exposition(registry_of(status), "")
print(*(line for line in text.decode().splitlines() if "label_share" in line), sep="\n")
