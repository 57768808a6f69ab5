{{- define "kindred.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains "kindred" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-kindred" (.Release.Name | trunc 32 | trimSuffix "-") }}
{{- end }}
{{- end }}

{{- /* `name` is not the release's: by this label, in its namespace, Kindred knows its own pods. */ -}}
{{- define "kindred.selectorLabels" -}}
app.kubernetes.io/name: kindred
{{- end }}

{{- define "kindred.labels" -}}
{{ include "kindred.selectorLabels" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kindred
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kindred.decides" -}}
{{- if eq .Values.registration "decide" }}true{{ end }}
{{- end }}

{{- /* The settings, as YAML: those of the registration, and over them those of the values. */ -}}
{{- define "kindred.settings" -}}
{{- $file := printf "files/overlays/%s/kindred.yaml" .Values.registration -}}
{{- $settings := mergeOverwrite (.Files.Get $file | fromYaml) (.Values.settings | default dict | deepCopy) -}}
{{- range $key, $value := $settings -}}
{{- /* Helm reads `off` as false, and numbers as floats, and would write 1e+09. */ -}}
{{- if eq (toString $value) "false" }}{{ if has $key (list "decide" "leaderElection" "preempt" "usageSource") }}{{ $_ := set $settings $key "off" }}{{ end }}{{ end -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $_ := set $settings $key (int64 $value) }}{{ end -}}
{{- end -}}
{{ toYaml $settings }}
{{- end }}

{{- define "kindred.tls" -}}
{{- if (include "kindred.settings" . | fromYaml).tlsDirectory }}true{{ end }}
{{- end }}

{{- /* The Lease of the leader election; empty for none. */ -}}
{{- define "kindred.lease" -}}
{{- $lease := (include "kindred.settings" . | fromYaml).leaderElection | default "off" -}}
{{- if ne $lease "off" }}{{ $lease }}{{ end }}
{{- end }}

{{- /* The port of HOST:PORT. */ -}}
{{- define "kindred.port" -}}
{{ splitList ":" . | last }}
{{- end }}

{{- define "kindred.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "kindred.fullname" .)) }}
{{- end }}

{{- define "kindred.schedulerTlsSecret" -}}
{{ .Values.tls.schedulerSecretName | default (printf "%s-scheduler-tls" (include "kindred.fullname" .)) }}
{{- end }}

{{- define "kindred.host" -}}
{{ include "kindred.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- /* For a registration that is plain HTTP without `settings.tlsDirectory`. */ -}}
{{- define "kindred.mutualTls" -}}
{caFile: /etc/kubernetes/kindred/ca.crt, certFile: /etc/kubernetes/kindred/tls.crt, keyFile: /etc/kubernetes/kindred/tls.key}
{{- end }}

{{- /* Fails for values that would break rules, or of which no pod would start. */ -}}
{{- define "kindred.checked" -}}
{{- $settings := include "kindred.settings" . | fromYaml -}}
{{- $effects := or $settings.bind (ne ($settings.decide | default "off") "off") -}}
{{- if and $effects (not (include "kindred.lease" .)) }}
{{- fail "settings.leaderElection: off, and Kindred binds or decides: two replicas run at once, at least during an update, and would break rules; leave it out" }}
{{- end }}
{{- if and (eq .Values.registration "score-offload") (include "kindred.lease" .) (not .Values.rbac.rules) }}
{{- fail "settings.leaderElection: the registration score-offload has no Role for a Lease, so no replica would become ready; leave it out" }}
{{- end }}
{{- if and .Values.adminService.enabled (not $settings.admin) }}
{{- fail "adminService.enabled: settings.admin is empty, so there is no admin port" }}
{{- end }}
{{- $fixed := dict "full-offload" (list "bind") "decide" (list "decide" "decideSchedulers" "decideClaimsScheduler" "decideGroupsScheduler") }}
{{- $shipped := .Files.Get (printf "files/overlays/%s/kindred.yaml" .Values.registration) | fromYaml }}
{{- range get $fixed .Values.registration | default list }}
{{- $value := get $shipped . | toString | trimAll "[]" }}
{{- if ne (get $settings . | toString | trimAll "[]") $value }}
{{- fail (printf "settings.%s: the chart's configuration of kube-scheduler is made for %s; use kustomize for another value" . $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A configuration of kube-scheduler, with the names of the release. */ -}}
{{- define "kindred.schedulerConfiguration" -}}
{{- $file := printf "files/scheduler/%s.yaml" .Values.registration -}}
{{- if include "kindred.decides" . }}{{ $file = printf "files/overlays/%s/scheduler.yaml" .Values.registration }}{{ end -}}
{{- $settings := include "kindred.settings" . | fromYaml -}}
{{- $port := printf "%s:%s" (include "kindred.host" .) (include "kindred.port" $settings.listen) -}}
{{- $text := regexReplaceAll "httpTimeout: [0-9]+s" (.Files.Get $file) (printf "httpTimeout: %vs" $settings.httpTimeout) -}}
{{- if include "kindred.tls" . }}
{{- $text = regexReplaceAll "(?m)^( +)- urlPrefix: http:" $text (printf "${1}- enableHTTPS: true\n${1}  tlsConfig: %s\n${1}  urlPrefix: https:" (include "kindred.mutualTls" .)) -}}
{{- end }}
{{ $text
    | replace "kindred.kindred.svc:8888" $port
    | replace "resourceNamespace: kindred" (printf "resourceNamespace: %s" .Release.Namespace)
    | replace "resourceName: kindred-scheduler" (printf "resourceName: %s-scheduler" (include "kindred.fullname" .)) }}
{{- end }}

{{- /*
The text of a file that the overlays have, too, with the names and the namespace of the release:
  (dict "root" $ "file" "components/...")
*/ -}}
{{- define "kindred.text" -}}
{{- $root := .root -}}
{{- $name := include "kindred.fullname" $root -}}
{{- $text := $root.Files.Get (printf "files/%s" .file)
    | replace "secretName: kindred-tls" (printf "secretName: %s" (include "kindred.tlsSecret" $root))
    | replace "secretName: kindred-scheduler-tls" (printf "secretName: %s" (include "kindred.schedulerTlsSecret" $root))
    | replace "mountPath: /etc/kindred-tls" (printf "mountPath: %s" ((include "kindred.settings" $root | fromYaml).tlsDirectory | default "/etc/kindred-tls"))
    | replace "secretName: kindred-ca" (printf "secretName: %s-ca" $name)
    | replace "secretName: kindred-admin" (printf "secretName: %s-admin" $name)
    | replace "kindred.kindred.svc" (include "kindred.host" $root)
    | replace "kindred-admin:admin" (printf "%s-admin:admin" $name)
    | replace "resourceNames: [kindred-scheduler]" (printf "resourceNames: [%s-scheduler]" $name)
    | replace "resourceNames: [kindred]" (printf "resourceNames: [%s]" (include "kindred.lease" $root))
    | replace "values: [kindred, kube-system]" (printf "values: [%s, kube-system]" $root.Release.Namespace) -}}
{{- if eq $root.Values.registration "score-offload" }}{{ $text = $text | replace "severity: critical" "severity: warning" }}
{{- else }}{{ $text = $text | replace "alert-severity: warning" "alert-severity: critical" }}{{ end -}}
{{- with $root.Values.observability.runbookUrl }}{{ $text = $text | replace "runbook: docs/operate.md" (printf "runbook_url: %s" .) }}{{ end -}}
{{- $text = regexReplaceAll "(?m)^( +)namespace: kindred$" $text (printf "${1}namespace: %s" $root.Release.Namespace) -}}
{{ regexReplaceAll "(?m)^( +)(name|policyName|serviceAccountName): kindred" $text (printf "${1}${2}: %s" $name) }}
{{- end }}

{{- /* An object with the labels of the release: (dict "root" $ "object" ...) */ -}}
{{- define "kindred.labelled" -}}
{{- $labels := merge (include "kindred.labels" .root | fromYaml) (.object.metadata.labels | default dict) }}
{{- $_ := set .object.metadata "labels" $labels }}
---
{{ toYaml .object }}
{{- end }}

{{- /* The objects of such a file. */ -}}
{{- define "kindred.objects" -}}
{{- $root := .root -}}
{{- range regexSplit "(?m)^---$" (include "kindred.text" .) -1 }}
{{- $object := fromYaml . }}
{{- if $object.kind }}
{{- if and (eq $object.kind "ClusterRole") $root.Values.rbac.rules }}{{ $_ := set $object "rules" $root.Values.rbac.rules }}{{ end }}
{{- include "kindred.labelled" (dict "root" $root "object" $object) }}
{{- end }}
{{- end }}
{{- end }}

{{- /*
A Deployment of such files: the first one, patched by the others. Patches add members to lists, as those of the overlays:
  (dict "root" $ "files" (list ...) "values" .Values "image" "..." "annotations" (dict ...))
*/ -}}
{{- define "kindred.deployment" -}}
{{- $root := .root -}}
{{- $object := include "kindred.text" (dict "root" $root "file" (first .files)) | fromYaml -}}
{{- $template := $object.spec.template -}}
{{- $spec := $template.spec -}}
{{- $container := first $spec.containers -}}
{{- range rest .files }}
{{- $patch := (include "kindred.text" (dict "root" $root "file" .) | fromYaml).spec.template.spec -}}
{{- $added := first $patch.containers -}}
{{- range list "env" "ports" "volumeMounts" }}
{{- if hasKey $added . }}{{ $_ := set $container . (concat (get $container . | default list) (get $added .)) }}{{ end }}
{{- end }}
{{- $_ := set $spec "volumes" (concat $spec.volumes $patch.volumes) -}}
{{- $_ := mergeOverwrite $spec (omit $patch "containers" "volumes") -}}
{{- end }}
{{- range list "priorityClassName" "nodeSelector" "tolerations" }}
{{- if get $root.Values . }}{{ $_ := set $spec . (get $root.Values .) }}{{ else }}{{ $_ := unset $spec . }}{{ end }}
{{- end }}
{{- $_ := set $object.spec "replicas" .values.replicas -}}
{{- $_ := set $container "resources" .values.resources -}}
{{- $_ := set $container "image" .image -}}
{{- $_ := set $template.metadata "annotations" .annotations -}}
{{- $_ := set $template.metadata.labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{ toYaml $object }}
{{- end }}
