{{- define "tarn-relay.selector" -}}
app.kubernetes.io/name: tarn-relay
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tarn-relay.labels" -}}
{{ include "tarn-relay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tarn-relay.args" -}}
- relay
{{- range .Values.relayed }}
- {{ .resource }}{{ with .group }}.{{ . }}{{ end }}
{{- end }}
{{- if eq .Values.mode "daemonset" }}
- --listen=unix:/run/tarn/relay.sock
{{- else }}
- --listen=0.0.0.0:8277
- --tls-cert-file=/etc/tarn/tls/tls.crt
- --tls-private-key-file=/etc/tarn/tls/tls.key
{{- if .Values.clientCA.cluster }}
- --client-ca=cluster
{{- else if .Values.clientCA.configMapName }}
- --client-ca=/etc/tarn/client-ca/ca.crt
{{- end }}
{{- if .Values.clientCA.impersonate }}
- --impersonate
{{- end }}
{{- end }}
- --metrics=0.0.0.0:8278
- --past-megabytes={{ .Values.past.megabytes }}
- --past={{ .Values.past.age }}
{{- if .Values.auditLog }}
- --audit-log=-
{{- end }}
{{- end }}

{{- define "tarn-relay.pod" -}}
metadata:
  labels:
    {{- include "tarn-relay.labels" . | nindent 4 }}
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "8278"
spec:
  serviceAccountName: {{ .Release.Name }}
  # Longer than the relay takes to close its watches one by one.
  terminationGracePeriodSeconds: 30
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- if eq .Values.mode "daemonset" }}
    runAsUser: {{ .Values.socket.runAsUser }}
    {{- else }}
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: relay
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        {{- include "tarn-relay.args" . | nindent 8 }}
      env:
        - name: GOMEMLIMIT
          value: {{ .Values.goMemoryLimit | quote }}
      ports:
        {{- if ne .Values.mode "daemonset" }}
        - name: https
          containerPort: 8277
        {{- end }}
        - name: metrics
          containerPort: 8278
      # Alive is a process that answers. Ready is synced, fresh and not stopping.
      livenessProbe:
        httpGet:
          path: /livez
          port: metrics
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 2
        failureThreshold: 1
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        {{- if eq .Values.mode "daemonset" }}
        - name: socket
          mountPath: /run/tarn
        {{- else }}
        - name: tls
          mountPath: /etc/tarn/tls
          readOnly: true
        {{- if .Values.clientCA.configMapName }}
        - name: client-ca
          mountPath: /etc/tarn/client-ca
          readOnly: true
        {{- end }}
        {{- end }}
  volumes:
    {{- if eq .Values.mode "daemonset" }}
    - name: socket
      hostPath:
        path: {{ .Values.socket.directory }}
        type: DirectoryOrCreate
    {{- else }}
    - name: tls
      secret:
        secretName: {{ .Values.tls.secretName }}
    {{- with .Values.clientCA.configMapName }}
    - name: client-ca
      configMap:
        name: {{ . }}
    {{- end }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
