// Query and path parameters of the API, as OpenAPI documents them (apimachinery/pkg/apis/meta/v1/types.go: GetOptions,
// ListOptions, CreateOptions, UpdateOptions, PatchOptions, DeleteOptions).

export interface ApiParameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'integer' | 'boolean'
  readonly description: string
}

function query(name: string, type: ApiParameter['type'], description: string): ApiParameter {
  return { name, in: 'query', type, description }
}

const DRY_RUN = query('dryRun', 'string', '`All`: the request is checked in full, but nothing is stored.')
const FIELD_MANAGER = query(
  'fieldManager',
  'string',
  'Name of the program that makes the change; at most 128 printable characters. Required for apply patches.',
)
const FIELD_VALIDATION = query(
  'fieldValidation',
  'string',
  'What happens to unknown and duplicate fields. Ignore: they are dropped. Warn (the default): they are dropped, and each is reported in a Warning header. Strict: the request is refused with 400.',
)
const FORCE = query('force', 'boolean', 'Take over fields that other managers own. Only with apply patches.')
const RESOURCE_VERSION = query(
  'resourceVersion',
  'string',
  'Constrains which version of the store the answer may show; for a watch, the version after which it begins.',
)

const SELECTION: readonly ApiParameter[] = [
  query('continue', 'string', 'Token from the metadata of the previous list, to get the items that follow it.'),
  query('fieldSelector', 'string', 'Restricts the objects by their fields. Default: everything.'),
  query('labelSelector', 'string', 'Restricts the objects by their labels. Default: everything.'),
  query(
    'limit',
    'integer',
    'Maximum number of objects to return. `continue` in the metadata of the list gets the next ones.',
  ),
  RESOURCE_VERSION,
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query(
    'sendInitialEvents',
    'boolean',
    'Only with watch: the objects that exist come first, then a bookmark with the annotation k8s.io/initial-events-end.',
  ),
  query('timeoutSeconds', 'integer', 'Maximum duration of the call.'),
]

const DELETION: readonly ApiParameter[] = [
  DRY_RUN,
  query('gracePeriodSeconds', 'integer', 'Seconds before the object is deleted. Zero means at once.'),
  query('orphanDependents', 'boolean', 'Deprecated: use propagationPolicy.'),
  query('propagationPolicy', 'string', 'What happens to dependents: Orphan, Background or Foreground.'),
]

/** x-kubernetes-action: what an operation does. */
export type Action = 'get' | 'list' | 'post' | 'put' | 'patch' | 'delete' | 'deletecollection'

export const ACTION_PARAMETERS: Readonly<Record<Action, readonly ApiParameter[]>> = {
  get: [],
  list: [
    query('allowWatchBookmarks', 'boolean', 'Whether a watch may contain events of type BOOKMARK.'),
    ...SELECTION,
    query('watch', 'boolean', 'Stream the changes as they happen. Give resourceVersion.'),
  ],
  post: [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION],
  put: [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION],
  patch: [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE],
  delete: DELETION,
  deletecollection: [...DELETION, ...SELECTION],
}

export const PRETTY: ApiParameter = query(
  'pretty',
  'string',
  'If "true", the output is indented. Default: only for browsers, curl and wget.',
)

export function nameParameter(kind: string): ApiParameter {
  return { name: 'name', in: 'path', type: 'string', description: `name of the ${kind}` }
}

export const NAMESPACE: ApiParameter = {
  name: 'namespace',
  in: 'path',
  type: 'string',
  description: 'object name and auth scope, such as for teams and projects',
}
