{{- define "abers.selector" -}}
app.kubernetes.io/name: abers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The values with configuration and secrets: those of `serve`, or of the service on Kafka. */}}
{{- define "abers.mode" -}}
{{- ternary .Values.serve .Values .Values.serve.enabled | toJson }}
{{- end }}

{{/* The names under which a server answers: those of its Service, and others. */}}
{{- define "abers.hosts" -}}
{{- $name := printf "%s.%s" .Release.Name .Release.Namespace }}
{{- $names := list .Release.Name $name (printf "%s.svc" $name) (printf "%s.svc.cluster.local" $name) }}
{{- concat $names .Values.serve.hosts | toJson }}
{{- end }}

{{- define "abers.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Bytes of a partition at rest, and more while its snapshot is made: the tables of docs/deploy.md, Memory. */}}
{{- define "abers.partition" -}}
{{- $m := .Values.memory }}
{{- $protected := ternary 1 0 $m.protected }}
{{- $models := mul $m.models (add 81000 (mul 9000 $protected) (mul 30 $m.labels)) }}
{{- $pending := add 208 $m.idBytes $m.featureBytes (mul 296 $protected) }}
{{- $id := add 110 $m.idBytes }}
{{- $waiting := min $m.maxBytes (mul $m.models (add (mul $pending $m.pending) (mul $id (add $m.early $m.finished)))) }}
{{- $observations := min (mul $m.models $m.pending) (div $m.maxBytes $pending) }}
{{- $finished := min (mul $m.models $m.finished) (div $m.maxBytes $id) }}
{{- $lanes := mul $protected $observations }}
{{- dict
    "rest" (add $models $waiting (mul 374 $lanes) $m.otherBytes)
    "saved" (add 41943040 (mul 60 (max (mul $m.models $m.labels) $observations $finished)) (mul 350 $lanes))
    | toJson }}
{{- end }}

{{- define "abers.resources" -}}
{{- $partition := include "abers.partition" . | fromJson }}
{{- $replicas := ternary 1 (int .Values.replicas) .Values.serve.enabled }}
{{- $partitions := ternary 1 (int .Values.partitions) .Values.serve.enabled }}
{{- $others := max 1 (sub $replicas 1) }}
{{- $usual := div (add $partitions $replicas -1) $replicas }}
{{- $most := div (add $partitions $others -1) $others -}}
requests:
  cpu: {{ .Values.cpu | quote }}
  memory: {{ add .Values.memory.process (div (mul $usual $partition.rest) 1048576) 1 }}Mi
limits:
  memory: {{ add .Values.memory.process (div (add (mul 2 $most $partition.rest) $partition.saved) 1048576) 1 }}Mi
{{- end }}

{{/* The name of the volume of a folder: /etc/kafka-ca is folder-etc-kafka-ca. */}}
{{- define "abers.volume" -}}
folder{{ . | lower | replace "/" "-" | replace "." "-" | replace "_" "-" }}
{{- end }}
