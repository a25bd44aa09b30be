{{- define "abers.selector" -}}
app.kubernetes.io/name: abers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "abers.image" -}}
{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Bytes of a partition at rest, and more while its snapshot is made: the tables of docs/deploy.md, Memory. */}}
{{- define "abers.partition" -}}
{{- $m := .Values.memory }}
{{- $protected := ternary 1 0 $m.protected }}
{{- $experts := mul $protected $m.models (add (min 9000 $m.labels) (min 90000 $m.labels)) }}
{{- $models := mul $m.models (add 81000 (mul 9000 $protected) (mul 30 $m.labels)) }}
{{- $pending := add 180 $m.idBytes $m.featureBytes (mul 112 $protected) }}
{{- $id := add 110 $m.idBytes }}
{{- $waiting := min $m.maxBytes (mul $m.models (add (mul $pending $m.pending) (mul $id (add $m.early $m.finished)))) }}
{{- $observations := min (mul $m.models $m.pending) (div $m.maxBytes $pending) }}
{{- $finished := min (mul $m.models $m.finished) (div $m.maxBytes $id) }}
{{- $lanes := mul $protected $observations }}
{{- dict
    "rest" (add $models (mul 85 $experts) $waiting (mul 358 $lanes) $m.otherBytes)
    "saved" (add 41943040 (mul 60 (max (mul $m.models $m.labels) $observations $finished)) (mul 180 $lanes) (mul 18 $experts))
    | toJson }}
{{- end }}

{{- define "abers.resources" -}}
{{- $partition := include "abers.partition" . | fromJson }}
{{- $replicas := int .Values.replicas }}
{{- $others := max 1 (sub $replicas 1) }}
{{- $usual := div (add .Values.partitions $replicas -1) $replicas }}
{{- $most := div (add .Values.partitions $others -1) $others -}}
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
