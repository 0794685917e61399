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
      '`kubernetes`: a Deployment, with the objects as CRDs of this cluster; `embedded`: a StatefulSet with one pod, with the objects on its volume',
    ),
    replicas: integer(
      undefined,
      1,
      1000,
      'number of pods: 2 or more (default 2); with `embedded` 1. Ignored with `autoscaling.enabled`',
    ),
    nameOverride: text('', "replaces the chart's name in names and labels"),
    fullnameOverride: text('', "replaces the release's name in names"),
    image: group('The image. It is not published in a registry: build it, push it, and name it here.', {
      repository: text('portcullis', 'name of the image, with the registry that you pushed it to', { minLength: 1 }),
      tag: text('', "empty: the chart's `appVersion`"),
      digest: text('', 'takes precedence over the tag; use it in production', { pattern: '^(sha256:[0-9a-f]{64})?$' }),
      pullPolicy: choice('IfNotPresent', ['IfNotPresent', 'Always', 'Never'], 'pull policy of the container'),
      pullSecrets: texts('names of Secrets'),
    }),
    settings: group(
      'Further settings of the gateway, each a flag of `serve` as in [docs/settings.md](../../../docs/settings.md). Settings that the chart sets itself are not among them.',
      settingValues(),
    ),
    bindAddress: text(
      '0.0.0.0',
      'address on which all ports are opened (`ports.admin` only with `admin.enabled`); `[::]` for IPv6',
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
        "dashboard, API and debug pages; on the pod's loopback address unless `admin.enabled`: use `kubectl port-forward`",
      ),
    }),
    shutdown: group('What happens after SIGTERM. The grace period of the pod is the sum of these times.', {
      delaySeconds: integer(
        15,
        0,
        3600,
        'how long the pod keeps serving while it is not ready, until balancers have noticed',
      ),
      drainSeconds: integer(
        30,
        0,
        86_400,
        'how long running requests may take to end; watches are ended one after the other',
      ),
      marginSeconds: integer(15, 5, 600, 'margin, so that the kubelet never kills a gateway that is still draining'),
    }),
    tls: group("The gateway's own certificate. Without one, the gateway generates it, with a CA that replicas share.", {
      secretName: text('', 'a Secret of type `kubernetes.io/tls`; changes take effect without a restart'),
    }),
    health: group('The port of probes and `/metrics`.', {
      tlsSecretName: text(
        '',
        'a Secret with `tls.crt`, `tls.key` and `ca.crt`: the port then uses TLS, so tokens for `/metrics` are not sent in clear text',
      ),
    }),
    admin: group(
      'The admin listener for other machines, and for the other replicas, with TLS and a login ([docs/admin-listener.md](../../../docs/admin-listener.md)).',
      {
        enabled: flag(
          false,
          "opens the listener on `ports.admin`, not only on the pod's loopback address; needs `admin.tls.secretName`",
        ),
        tls: group('', {
          secretName: text(
            '',
            'a Secret of type `kubernetes.io/tls` for `NAME-admin.NAMESPACE.svc`; all replicas have this certificate, and recognize each other by it; changes take effect without a restart',
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
    certManager: group('A Certificate of cert-manager, instead of `tls.secretName`.', {
      enabled: flag(false, 'needs cert-manager'),
      issuerRef: group('The issuer of the certificate.', {
        name: text('', 'required with `certManager.enabled`'),
        kind: choice('Issuer', ['Issuer', 'ClusterIssuer'], ''),
        group: text('cert-manager.io', ''),
      }),
      dnsNames: texts("host names that clients use; the Service's own names are always included"),
      ipAddresses: texts('addresses of the VIP'),
      duration: text('2160h', 'validity of the certificate', DURATION),
      renewBefore: text('720h', 'how long before its expiry it is replaced', DURATION),
    }),
    service: group('The Service for clients.', {
      type: choice('ClusterIP', ['ClusterIP', 'NodePort', 'LoadBalancer'], ''),
      port: port(443, 'port of the Service'),
      annotations: textMap("annotations for MetalLB, kube-vip or a cloud's balancer, such as the VIP"),
      labels: textMap('further labels'),
      loadBalancerClass: text('', 'class of the balancer'),
      loadBalancerIP: text('', 'deprecated by Kubernetes; most balancers have an annotation'),
      loadBalancerSourceRanges: texts('sources that may connect, if the balancer supports this', CIDR),
      externalTrafficPolicy: choice(
        'Local',
        ['Local', 'Cluster'],
        "`Local` keeps the client's address; not for `ClusterIP`",
      ),
      nodePort: integer(0, 0, 65_535, '0: any'),
      healthCheckNodePort: integer(0, 0, 65_535, 'the health check port of a `LoadBalancer` with `Local`; 0: any'),
      exposeHealth: flag(
        false,
        'whether the Service also has the health port, for balancers that query `/readyz` themselves',
      ),
      ipFamilyPolicy: choice('', ['', 'SingleStack', 'PreferDualStack', 'RequireDualStack'], "empty: the cluster's"),
    }),
    proxyProtocol: group(
      'A load balancer in front sends the address of the client in a PROXY header ([docs/vip.md](../../../docs/vip.md)).',
      {
        enabled: flag(false, 'whether the port of clients expects PROXY headers'),
        from: texts('addresses of balancers whose headers are trusted; required with `enabled`', {
          pattern: '^[0-9a-fA-F.:]+(/[0-9]{1,3})?$',
        }),
        others: choice('refuse', ['refuse', 'plain'], 'what happens to connections from other addresses'),
      },
    ),
    control: group('The port of the embedded API server, or of the webhook for objects.', {
      hosts: texts('further names in its certificate, in addition to those of the Service `NAME-internal`'),
    }),
    redis: group('Limits that replicas share.', {
      url: text('', 'the value of `--redis-url`, without a password; empty: each replica has its own limits', {
        pattern: '^(rediss?(\\+(sentinel|cluster))?://([^:@/]+@)?[^@]+)?$',
      }),
      passwordSecret: secretKey('The password of Redis.', 'password'),
    }),
    store: group('Only with `embedded`.', {
      keySecret: secretKey('The key that encrypts Secrets in the store, kept apart from the volume.', 'store.key'),
    }),
    persistence: group('The volume, with `embedded`; with `kubernetes` nothing has to be persisted.', {
      size: text('10Gi', 'size of the claim', { pattern: '^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$' }),
      storageClassName: text('', "empty: the cluster's default; `-`: none, for volumes that you create yourself"),
      existingClaim: text('', 'an existing claim to use instead of a new one'),
    }),
    protection: group('Pod protection ([what it is](../../../docs/protection.md)).', {
      listen: flag(false, 'opens the webhook for deletions that bypass the gateway'),
      generatorConfig: text('', 'contents of the file of `--protection-generator-config`; empty: none'),
    }),
    webhooks: group(
      'Webhook configurations in this cluster, each with the CA with which kube-apiserver verifies the gateway.',
      {
        certManager: flag(false, 'the CA injector of cert-manager fills in `caBundle`; with `kubernetes`'),
        validating: group('Checks objects when they are written.', {
          enabled: flag(false, 'only with `kubernetes`'),
          caBundle: text('', 'base64 of PEM: `tls.crt` of the Secret `portcullis-control-ca`'),
          token: text(
            '',
            'token with which kube-apiserver authenticates to the gateway, from the output of `portcullis control webhook`',
          ),
        }),
        protection: group('Checks deletions and evictions of pods.', {
          enabled: flag(false, 'needs `protection.listen`'),
          cell: text('', 'name of this cluster as PodProtectors know it'),
          caBundle: text('', 'as above; with `embedded`, the `ca.crt` of the control port'),
          token: text(
            '',
            'from the output of `portcullis protect install --print`; empty: kube-apiservers authenticate with credentials',
          ),
          failurePolicy: choice('Ignore', ['Ignore', 'Fail'], '`Fail` stops every deletion while no replica answers'),
          excludedNamespaces: {
            ...texts("namespaces that are not checked, in addition to the release's own"),
            fallback: ['kube-system'],
          },
        }),
      },
    ),
    crds: group('CustomResourceDefinitions, with `kubernetes`.', {
      install: flag(
        true,
        'installed and upgraded with the release, kept when it is uninstalled; false: apply them yourself',
      ),
    }),
    rbac: group('Rights of the gateway in this cluster, with `kubernetes`, as in `deploy/rbac`.', {
      create: flag(true, 'whether they are created; false: bind them yourself'),
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
        'The token that `/metrics` requires. Without it, any token that this cluster accepts and authorizes.',
        'token',
      ),
      podMonitor: group('', {
        enabled: flag(false, 'needs `metrics.tokenSecret`'),
        interval: text('30s', '', DURATION),
        labels: textMap('labels by which Prometheus selects it'),
      }),
      serviceMonitor: group('Instead of the PodMonitor.', {
        enabled: flag(false, 'without `metrics.tokenSecret`, Prometheus sends the token of its own ServiceAccount'),
        interval: text('30s', '', DURATION),
        labels: textMap('labels by which Prometheus selects it'),
      }),
      rules: group('A PrometheusRule: `deploy/prometheus/rules.yaml`.', {
        enabled: flag(false, ''),
        labels: textMap('labels by which Prometheus selects it'),
        runbookUrl: text(
          'docs/runbooks.md',
          'address of your copy of docs/runbooks.md: alerts and dashboards link to its sections',
          { minLength: 1 },
        ),
      }),
      dashboard: group('A ConfigMap with four Grafana dashboards, `deploy/grafana/`; they need the rules, too.', {
        enabled: flag(false, ''),
        labels: textMap("labels by which Grafana's sidecar selects it", { grafana_dashboard: '1' }),
      }),
    }),
    networkPolicy: group('Which peers may reach the pods.', {
      enabled: flag(true, 'whether only the ports above can be reached'),
      gatewayFrom: kubeObjects('peers that may reach the port of clients; empty: all'),
      controlFrom: kubeObjects(
        'peers that may reach the ports of control and protection; empty: all, because kube-apiservers need not be pods',
      ),
      healthFrom: kubeObjects('peers that may reach the health port; empty: all'),
      adminFrom: kubeObjects(
        'peers that may reach the admin port, with `admin.enabled`, in addition to the other replicas; empty: all',
      ),
    }),
    podDisruptionBudget: group('With `kubernetes`; a budget for a single pod would block drains.', {
      enabled: flag(true, ''),
      maxUnavailable: integer(1, 1, 1000, 'pods that a drain may evict at a time'),
    }),
    autoscaling: group('A HorizontalPodAutoscaler. Each step moves connections, so it scales down slowly.', {
      enabled: flag(false, 'only with `kubernetes`'),
      minReplicas: integer(2, 2, 1000, ''),
      maxReplicas: integer(6, 2, 1000, ''),
      targetCPUUtilizationPercentage: integer(60, 1, 100, 'percentage of `resources.requests.cpu`'),
      scaleDownStabilizationSeconds: integer(
        900,
        600,
        3600,
        'how long there must have been too many pods before it scales down',
      ),
    }),
    resources: kubeObject(
      'resources of the container; the gateway runs a thread for each CPU of the limit, or of the request if there is no limit',
      {
        requests: { cpu: '1', memory: '512Mi' },
        limits: { memory: '2Gi' },
      },
    ),
    topologySpread: flag(true, 'whether pods are spread over zones and nodes where possible'),
    nodeSelector: textMap(''),
    tolerations: kubeObjects(''),
    affinity: kubeObject(''),
    priorityClassName: text('', 'empty: none'),
    podAnnotations: textMap(''),
    podLabels: textMap(''),
    hostAliases: kubeObjects('names of clusters behind the gateway that DNS does not know'),
    extraVolumes: kubeObjects('volumes for files that `settings` name'),
    extraVolumeMounts: kubeObjects('mounts of these volumes'),
    tests: group('', { enabled: flag(true, 'whether there is a pod for `helm test`') }),
    // Helm's own.
    global: kubeObject('not used'),
  },
  { allOf: SHAPES },
)
