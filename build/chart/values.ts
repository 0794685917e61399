// Every value of the Helm chart, in the order of values.yaml. `UPDATE=1 node --test test/chart/render.test.ts` makes the chart's files of it.

import { settingValues } from './setting-values.ts'
import {
  choice,
  flag,
  type Group,
  group,
  integer,
  kubeObject,
  kubeObjects,
  port,
  secretKey,
  text,
  textMap,
  texts,
} from './values-table.ts'

const CIDR = { pattern: '^[0-9a-fA-F.:]+/[0-9]{1,3}$' }
const DURATION = { pattern: '^([0-9]+(\\.[0-9]+)?(s|m|h))+$' }

/** What depends on the shape. */
const SHAPES = [
  {
    if: { properties: { shape: { const: 'embedded' } } },
    // biome-ignore lint/suspicious/noThenProperty: JSON Schema
    then: {
      properties: {
        replicas: { const: 1 },
        autoscaling: { properties: { enabled: { const: false } } },
        webhooks: { properties: { validating: { properties: { enabled: { const: false } } } } },
      },
    },
    else: {
      properties: {
        replicas: { minimum: 2 },
        store: { properties: { keySecret: { properties: { name: { const: '' } } } } },
        persistence: { properties: { existingClaim: { const: '' } } },
      },
    },
  },
]

/** Without TLS and a login the gateway does not open it either. */
const ADMIN_TLS = {
  if: { properties: { enabled: { const: true } }, required: ['enabled'] },
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema
  then: { properties: { tls: { properties: { secretName: { minLength: 1 } } } } },
}

export const VALUES: Group = group(
  '',
  {
    shape: choice(
      'kubernetes',
      ['kubernetes', 'embedded'],
      '`kubernetes`: a Deployment, objects are CRDs of this cluster; `embedded`: a StatefulSet of one, objects are on its volume',
    ),
    replicas: integer(
      undefined,
      1,
      1000,
      'pods: 2 or more (default 2); with `embedded` 1. Ignored with `autoscaling.enabled`',
    ),
    nameOverride: text('', "in place of the chart's name in names and labels"),
    fullnameOverride: text('', "in place of the release's name in names"),
    image: group('The image; there is no published registry: build it and name where you pushed it.', {
      repository: text('portcullis', 'name, with the registry that you pushed it to', { minLength: 1 }),
      tag: text('', "empty: the chart's `appVersion`"),
      digest: text('', 'wins over the tag; use it in production', { pattern: '^(sha256:[0-9a-f]{64})?$' }),
      pullPolicy: choice('IfNotPresent', ['IfNotPresent', 'Always', 'Never'], 'as of a container'),
      pullSecrets: texts('names of Secrets'),
    }),
    settings: group(
      'Further settings of the gateway, each a flag of `serve` as in [docs/settings.md](../../../docs/settings.md). What the chart sets itself is not among them.',
      settingValues(),
    ),
    bindAddress: text(
      '0.0.0.0',
      'what all ports are opened on, `ports.admin` only with `admin.enabled`; `[::]` for IPv6',
      {
        pattern: '^([0-9.]+|\\[[0-9a-fA-F:]+\\])$',
      },
    ),
    ports: group('Ports of the container.', {
      gateway: port(8443, 'clients'),
      control: port(9443, 'the embedded API server; with `kubernetes` the webhook for objects'),
      protection: port(9444, 'the webhook for deletions of pods, with `protection.listen`'),
      health: port(8081, 'probes and `/metrics`'),
      admin: port(
        9090,
        "dashboard, API and debug pages, on the pod's loopback unless `admin.enabled`: `kubectl port-forward`",
      ),
    }),
    shutdown: group('What happens after SIGTERM; the grace period of the pod is the sum.', {
      delaySeconds: integer(15, 0, 3600, 'not ready, but serving and accepting, until balancers have noticed'),
      drainSeconds: integer(30, 0, 86_400, 'running requests may end, watches are ended one by one'),
      marginSeconds: integer(15, 5, 600, 'added, so that the kubelet never kills what is still draining'),
    }),
    tls: group("The gateway's own certificate. Without it, it makes one, whose CA replicas share.", {
      secretName: text('', 'a Secret of type `kubernetes.io/tls`; followed when it changes'),
    }),
    health: group('The port of probes and `/metrics`.', {
      tlsSecretName: text(
        '',
        'a Secret with `tls.crt`, `tls.key` and `ca.crt`: it has TLS then, and tokens for `/metrics` do not cross the network in clear',
      ),
    }),
    admin: group(
      'The admin listener for other machines, and for the other replicas, with TLS and a login ([docs/admin-listener.md](../../../docs/admin-listener.md)).',
      {
        enabled: flag(false, "opened beyond the pod's loopback, on `ports.admin`; needs `admin.tls.secretName`"),
        tls: group('', {
          secretName: text(
            '',
            'a Secret of type `kubernetes.io/tls` for `NAME-admin.NAMESPACE.svc`; all replicas have it, by which they know each other; followed when it changes',
          ),
        }),
        service: group('The Service `NAME-admin`.', {
          enabled: flag(true, ''),
          type: choice('ClusterIP', ['ClusterIP', 'NodePort', 'LoadBalancer'], ''),
          port: port(443, 'port of the Service'),
          annotations: textMap(''),
        }),
      },
      ADMIN_TLS,
    ),
    certManager: group('A Certificate of cert-manager in place of `tls.secretName`.', {
      enabled: flag(false, 'needs cert-manager'),
      issuerRef: group('Who issues it.', {
        name: text('', 'needed'),
        kind: choice('Issuer', ['Issuer', 'ClusterIssuer'], ''),
        group: text('cert-manager.io', ''),
      }),
      dnsNames: texts("host names of clients; the Service's own are always in it"),
      ipAddresses: texts('addresses of the VIP'),
      duration: text('2160h', 'how long it is valid', DURATION),
      renewBefore: text('720h', 'how long before its end it is replaced', DURATION),
    }),
    service: group('The Service of clients.', {
      type: choice('ClusterIP', ['ClusterIP', 'NodePort', 'LoadBalancer'], ''),
      port: port(443, 'port of the Service'),
      annotations: textMap("for the VIP: what MetalLB, kube-vip or a cloud's balancer go by"),
      labels: textMap('further labels'),
      loadBalancerClass: text('', 'which balancer'),
      loadBalancerIP: text('', 'deprecated by Kubernetes; most balancers have an annotation'),
      loadBalancerSourceRanges: texts('who may connect, where the balancer can tell', CIDR),
      externalTrafficPolicy: choice(
        'Local',
        ['Local', 'Cluster'],
        "`Local` keeps the client's address; not for `ClusterIP`",
      ),
      nodePort: integer(0, 0, 65_535, '0: any'),
      healthCheckNodePort: integer(0, 0, 65_535, 'the health check port of a `LoadBalancer` with `Local`; 0: any'),
      exposeHealth: flag(false, 'the health port, too, for balancers that ask `/readyz` themselves'),
      ipFamilyPolicy: choice('', ['', 'SingleStack', 'PreferDualStack', 'RequireDualStack'], "empty: the cluster's"),
    }),
    proxyProtocol: group(
      'A PROXY header from the balancer in front says who the client is ([docs/vip.md](../../../docs/vip.md)).',
      {
        enabled: flag(false, 'on the port of clients'),
        from: texts('addresses of balancers whose header is believed; needed with `enabled`', {
          pattern: '^[0-9a-fA-F.:]+(/[0-9]{1,3})?$',
        }),
        others: choice('refuse', ['refuse', 'plain'], 'what becomes of connections from elsewhere'),
      },
    ),
    control: group('The port of the embedded API server, or of the webhook for objects.', {
      hosts: texts('further names in its certificate, beside those of the Service `NAME-internal`'),
    }),
    redis: group('Limits that replicas share.', {
      url: text('', 'as `--redis-url`, without a password; empty: each replica has its own limits', {
        pattern: '^(rediss?(\\+(sentinel|cluster))?://([^:@/]+@)?[^@]+)?$',
      }),
      passwordSecret: secretKey('Its password.', 'password'),
    }),
    store: group('Only with `embedded`.', {
      keySecret: secretKey('The key that encrypts Secrets in the store, away from the volume.', 'store.key'),
    }),
    persistence: group('The volume, with `embedded`; `kubernetes` keeps nothing that has to last.', {
      size: text('10Gi', 'size of the claim', { pattern: '^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$' }),
      storageClassName: text('', "empty: the cluster's default; `-`: none, for volumes made by hand"),
      existingClaim: text('', 'a claim of yours in place of a new one'),
    }),
    protection: group('Pod protection ([what it is](../../../docs/protection.md)).', {
      listen: flag(false, 'opens the webhook for deletions that do not come through the gateway'),
      generatorConfig: text('', 'text of `--protection-generator-config`; empty: none'),
    }),
    webhooks: group(
      'Configurations of webhooks in this cluster, each with a CA by which kube-apiserver verifies the gateway.',
      {
        certManager: flag(false, 'the CA injector of cert-manager fills in `caBundle`; with `kubernetes`'),
        validating: group('Checks objects when they are written.', {
          enabled: flag(false, 'only with `kubernetes`'),
          caBundle: text('', 'base64 of PEM: `tls.crt` of the Secret `portcullis-control-ca`'),
          token: text('', 'by which the gateway knows its caller: in the output of `portcullis control webhook`'),
        }),
        protection: group('Asks about deletions and evictions of pods.', {
          enabled: flag(false, 'needs `protection.listen`'),
          cell: text('', 'name of this cluster as PodProtectors know it'),
          caBundle: text('', 'as above; of `embedded`, `ca.crt` of the control port'),
          token: text(
            '',
            'in the output of `portcullis protect install --print`; empty: kube-apiservers have credentials',
          ),
          failurePolicy: choice('Ignore', ['Ignore', 'Fail'], '`Fail` stops every deletion while no replica answers'),
          excludedNamespaces: { ...texts("never asked about, beside the release's own"), fallback: ['kube-system'] },
        }),
      },
    ),
    crds: group('CustomResourceDefinitions, with `kubernetes`.', {
      install: flag(
        true,
        'installed and upgraded with the release, kept when it is uninstalled; false: apply them yourself',
      ),
    }),
    rbac: group('Rights of the gateway in this cluster, with `kubernetes`: those of `deploy/rbac`.', {
      create: flag(true, 'false: bind them yourself'),
      protectionCore: flag(true, 'rights on PodProtectors'),
      unboundRoles: flag(
        true,
        'ClusterRoles that you bind: `NAME-operator`, `NAME-insight-view` and `NAME-insight-admin` for people, `NAME-metrics-reader` for Prometheus',
      ),
    }),
    serviceAccount: group('', {
      create: flag(true, ''),
      name: text('', "empty: the release's name"),
      annotations: textMap(''),
    }),
    metrics: group('All off: they need the CRDs of the Prometheus operator.', {
      tokenSecret: secretKey(
        'The token that `/metrics` asks for. Without it, a token that this cluster reviews.',
        'token',
      ),
      podMonitor: group('', {
        enabled: flag(false, 'needs `metrics.tokenSecret`'),
        interval: text('30s', '', DURATION),
        labels: textMap('that Prometheus selects by'),
      }),
      serviceMonitor: group('In place of the PodMonitor.', {
        enabled: flag(false, "without `metrics.tokenSecret` it presents the token of Prometheus' own ServiceAccount"),
        interval: text('30s', '', DURATION),
        labels: textMap('that Prometheus selects by'),
      }),
      rules: group('A PrometheusRule: `deploy/prometheus/rules.yaml`.', {
        enabled: flag(false, ''),
        labels: textMap('that Prometheus selects by'),
        runbookUrl: text(
          'docs/runbooks.md',
          'where your people find docs/runbooks.md: alerts and dashboards link to its sections',
          { minLength: 1 },
        ),
      }),
      dashboard: group('A ConfigMap with four Grafana dashboards, `deploy/grafana/`; they need the rules, too.', {
        enabled: flag(false, ''),
        labels: textMap("that Grafana's sidecar selects by", { grafana_dashboard: '1' }),
      }),
    }),
    networkPolicy: group('Who may reach the pods.', {
      enabled: flag(true, 'nothing but the ports above'),
      gatewayFrom: kubeObjects('peers of the port of clients; empty: everybody'),
      controlFrom: kubeObjects(
        'peers of the ports of control and protection; empty: everybody, since kube-apiservers are no pods',
      ),
      healthFrom: kubeObjects('peers of the health port; empty: everybody'),
      adminFrom: kubeObjects(
        'peers of the admin port, with `admin.enabled`, beside the other replicas; empty: everybody',
      ),
    }),
    podDisruptionBudget: group('With `kubernetes`; a budget for a single pod would block drains.', {
      enabled: flag(true, ''),
      maxUnavailable: integer(1, 1, 1000, 'pods that a drain may take at once'),
    }),
    autoscaling: group('A HorizontalPodAutoscaler. Each step moves connections, so it goes down slowly.', {
      enabled: flag(false, 'only with `kubernetes`'),
      minReplicas: integer(2, 2, 1000, ''),
      maxReplicas: integer(6, 2, 1000, ''),
      targetCPUUtilizationPercentage: integer(60, 1, 100, 'percentage of `resources.requests.cpu`'),
      scaleDownStabilizationSeconds: integer(900, 600, 3600, 'how long it must have been too many'),
    }),
    resources: kubeObject(
      'resources of the container; the gateway runs a thread for each CPU of the limit, else of the request',
      {
        requests: { cpu: '1', memory: '512Mi' },
        limits: { memory: '2Gi' },
      },
    ),
    topologySpread: flag(true, 'pods are spread over zones and nodes where that is possible'),
    nodeSelector: textMap(''),
    tolerations: kubeObjects(''),
    affinity: kubeObject(''),
    priorityClassName: text('', 'empty: none'),
    podAnnotations: textMap(''),
    podLabels: textMap(''),
    hostAliases: kubeObjects('names that no DNS knows, of the clusters behind the gateway'),
    extraVolumes: kubeObjects('for files that `settings` name'),
    extraVolumeMounts: kubeObjects('where they are'),
    tests: group('', { enabled: flag(true, 'the pod of `helm test`') }),
    // Helm's own.
    global: kubeObject('not used'),
  },
  { allOf: SHAPES },
)
