// The rights that the gateway's own credential needs in a cluster, and the user that its read cache reads as: exactly those in deploy/rbac (a test
// compares them). The gateway checks each one in the cluster, and reports missing ones with the file that grants them.

/** The user that the read cache reads as. */
export const CACHE_USER = 'portcullis-cache'
export const CACHE_RIGHTS_FILE = 'deploy/rbac/read-cache.yaml'
/** Maximum rights checked for that user; beyond that, the cache reports its own refusals. */
export const MOST_CACHE_RIGHTS = 256

/** One SelfSubjectAccessReview, or a SubjectAccessReview. */
export interface GatewayRight {
  /** The user that needs it. Default: the gateway's own. */
  readonly user?: string
  readonly verb: string
  /** '' is the core group. */
  readonly group: string
  /** `userextras/KEY`, including its subresource, as RBAC writes it. */
  readonly resource: string
  /** '' = in all namespaces. */
  readonly namespace: string
  /** Name of one object. Default: all. */
  readonly name?: string
  /** The file of this repository that grants it. */
  readonly file: string
  /** A set of rights that can replace this one. Default: nothing replaces it. */
  readonly orElse?: readonly GatewayRight[]
}

/** The parts of a CompiledCluster that decide which rights are needed. */
interface RightsScope {
  readonly protection:
    | { readonly aggregation: { readonly updateTrigger: { readonly namespace: string } | undefined } }
    | undefined
  /** The cluster-autoscaler's status ConfigMap. Default: not read. */
  readonly autoscaler?: { readonly namespace: string; readonly name: string } | undefined
  /** Automatic decisions based on cluster health. Default: none. */
  readonly degrade?: { readonly auto: object | undefined; readonly recovery: object | undefined }
  /** Lowered replica counts are checked. Default: they are not. */
  readonly scaleProtection?: object | undefined
  /** The `kubernetes` EndpointSlice is followed. Default: it is not. */
  readonly followsSlice?: boolean
  /** Resources that the read cache follows. Default: none. */
  readonly cache?:
    | readonly { readonly group: string; readonly resource: string; readonly namespaces: readonly string[] }[]
    | undefined
}

const SCALE_FILE = 'deploy/rbac/scale-worker.yaml'
const USER_FILE = 'deploy/rbac/upstream-gateway-user.yaml'
const WORKER_FILE = 'deploy/rbac/protection-worker.yaml'
const AUTOSCALER_FILE = 'deploy/rbac/autoscaler-status.yaml'
const NODES_FILE = 'deploy/rbac/degrade-nodes.yaml'
const SLICES_FILE = 'deploy/rbac/endpoint-slices.yaml'
const AUTHENTICATION = 'authentication.k8s.io'

/**
 * Keys of Impersonate-Extra-* that a current kube-apiserver itself assigns, for certificates and service account tokens
 * (apiserver/pkg/authentication/serviceaccount/util.go). Webhook and OIDC configurations may add others.
 */
const EXTRA_KEYS = ['credential-id', 'node-name', 'node-uid', 'pod-name', 'pod-uid']

function right(verb: string, group: string, resource: string, file: string, namespace = ''): GatewayRight {
  return { verb, group, resource, namespace, file }
}

const USER_RIGHTS: readonly GatewayRight[] = [
  right('impersonate', '', 'users', USER_FILE),
  right('impersonate', '', 'groups', USER_FILE),
  right('impersonate', '', 'serviceaccounts', USER_FILE),
  {
    ...right('impersonate', AUTHENTICATION, '*', USER_FILE),
    // Narrower rights that may have been granted instead.
    orElse: [
      right('impersonate', AUTHENTICATION, 'uids', USER_FILE),
      ...EXTRA_KEYS.map((key) =>
        right('impersonate', AUTHENTICATION, `userextras/authentication.kubernetes.io/${key}`, USER_FILE),
      ),
    ],
  },
  right('create', AUTHENTICATION, 'tokenreviews', USER_FILE),
  right('create', 'authorization.k8s.io', 'subjectaccessreviews', USER_FILE),
]

const PROTECTION_RIGHTS: readonly GatewayRight[] = [
  ...['get', 'list', 'watch'].map((verb) => right(verb, '', 'pods', WORKER_FILE)),
  ...['get', 'create', 'patch'].map((verb) => right(verb, '', 'events', WORKER_FILE)),
]

const NODE_RIGHTS: readonly GatewayRight[] = ['get', 'list', 'watch'].map((verb) =>
  right(verb, '', 'nodes', NODES_FILE),
)

const SLICE_RIGHTS: readonly GatewayRight[] = ['list', 'watch'].map((verb) =>
  right(verb, 'discovery.k8s.io', 'endpointslices', SLICES_FILE, 'default'),
)

const SCALE_RIGHTS: readonly GatewayRight[] = [
  ...['deployments', 'statefulsets', 'replicasets'].map((resource) => right('get', 'apps', resource, SCALE_FILE)),
  right('list', 'apps', 'replicasets', SCALE_FILE),
  right('get', '', 'replicationcontrollers', SCALE_FILE),
  right('list', '', 'pods', SCALE_FILE),
]

/** All rights that are needed in a cluster. */
export function gatewayRights(scope: RightsScope): readonly GatewayRight[] {
  const { protection, autoscaler, degrade, scaleProtection, followsSlice, cache } = scope
  const scale = scaleProtection === undefined ? [] : SCALE_RIGHTS
  const slices = followsSlice === true ? SLICE_RIGHTS : []
  const others = [...autoscalerRights(autoscaler), ...nodeRights(degrade), ...scale, ...slices, ...cacheRights(cache)]
  return [...USER_RIGHTS, ...protectionRights(protection), ...others]
}

function protectionRights(protection: RightsScope['protection']): readonly GatewayRight[] {
  if (protection === undefined) return []
  const namespace = protection.aggregation.updateTrigger?.namespace
  if (namespace === undefined) return PROTECTION_RIGHTS
  const trigger = ['create', 'patch'].map((verb) => right(verb, '', 'pods', WORKER_FILE, namespace))
  return [...PROTECTION_RIGHTS, ...trigger]
}

function autoscalerRights(autoscaler: RightsScope['autoscaler']): readonly GatewayRight[] {
  if (autoscaler === undefined) return []
  const { namespace, name } = autoscaler
  return ['list', 'watch'].map((verb) => ({ ...right(verb, '', 'configmaps', AUTOSCALER_FILE, namespace), name }))
}

/** Two versions of a resource need the same. */
function cacheRights(cache: RightsScope['cache']): readonly GatewayRight[] {
  const places = (cache ?? []).flatMap(({ group, resource, namespaces }) =>
    namespaces.map((namespace) => ({ group, resource, namespace })),
  )
  const distinct = new Map(places.map((place) => [JSON.stringify(place), place]))
  const all = [...distinct.values()].flatMap(({ group, resource, namespace }) =>
    ['list', 'watch'].map((verb) => ({
      ...right(verb, group, resource, CACHE_RIGHTS_FILE, namespace),
      user: CACHE_USER,
    })),
  )
  return all.slice(0, MOST_CACHE_RIGHTS)
}

/** Both watch the nodes, and so does recovery from a mode entered for another reason. */
function nodeRights(degrade: RightsScope['degrade']): readonly GatewayRight[] {
  return degrade?.auto === undefined && degrade?.recovery === undefined ? [] : NODE_RIGHTS
}

/** Whether only pod protection needs it. */
export function isProtectionRight({ file }: GatewayRight): boolean {
  return file === WORKER_FILE
}

/**
 * Whether only features beside the request path (pod protection, scale write checks, the fleet view, the read cache) lack rights, so that users' requests
 * still pass.
 */
export function requestsStillPass(missing: readonly GatewayRight[]): boolean {
  return missing.length > 0 && missing.every(({ file }) => file !== USER_FILE)
}

/** SelfSubjectAccessReview's spec.resourceAttributes. */
export function reviewAttributes({
  verb,
  group,
  resource,
  namespace,
  name: objectName,
}: GatewayRight): Readonly<Record<string, string>> {
  const slash = resource.indexOf('/')
  const name = slash < 0 ? resource : resource.slice(0, slash)
  const subresource = slash < 0 ? '' : resource.slice(slash + 1)
  return {
    verb,
    group,
    resource: name,
    ...(subresource !== '' && { subresource }),
    ...(namespace !== '' && { namespace }),
    ...(objectName !== undefined && { name: objectName }),
  }
}

/**
 * `user "gw" may not impersonate users, groups; may not create tokenreviews.authentication.k8s.io: apply deploy/rbac/...`.
 * @param user the gateway's name in that cluster; '' = unknown
 */
export function missingRightsMessage(missing: readonly GatewayRight[], user: string): string {
  const own = missing.filter(({ user: whose }) => whose === undefined)
  const cache = refusalsOf(missing.filter(({ user: whose }) => whose !== undefined))
  const texts = own.length === 0 ? [] : [ownRightsMessage(own, user)]
  if (cache.length > 0) {
    texts.push(
      `the user ${CACHE_USER}, as which the read cache reads, ${cache.join('; ')}: name them in ${CACHE_RIGHTS_FILE} and apply it to the cluster`,
    )
  }
  return texts.join('; ')
}

function ownRightsMessage(missing: readonly GatewayRight[], user: string): string {
  const files = [...new Set(missing.map(({ file }) => file))]
  const texts = files.map((file) => {
    const refusals = refusalsOf(missing.filter((one) => one.file === file))
    return `${refusals.join('; ')}: apply ${file} to the cluster`
  })
  const who = user === '' ? 'the user of the gateway' : `the gateway's user ${JSON.stringify(user)}`
  const rename = user === 'portcullis' || user === '' ? '' : `, with this user in place of portcullis`
  return `${who} ${texts.join('; it ')}${rename}`
}

function refusalsOf(missing: readonly GatewayRight[]): string[] {
  const resources = new Map<string, string[]>()
  for (const { verb, group, resource, namespace, name } of missing) {
    const where = namespace === '' ? '' : ` in namespace ${namespace}`
    const what = `${group === '' ? resource : `${resource}.${group}`}${name === undefined ? '' : ` ${name}`}`
    const key = JSON.stringify([verb, where])
    resources.set(key, [...(resources.get(key) ?? []), what])
  }
  return [...resources].map(([key, names]) => {
    const [verb, where] = JSON.parse(key) as [string, string]
    return `may not ${verb} ${names.join(', ')}${where}`
  })
}
