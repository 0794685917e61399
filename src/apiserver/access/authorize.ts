// Authorization by two built-in roles, bound to users and groups. `admin` may do everything, `view` may read everything
// but Secrets. Every authenticated user may use discovery and self reviews; anonymous users may only check whether
// the server is healthy. No group has rights by its name alone, not even system:masters.

import { failure, type Status } from '../../api/kube/status.ts'
import { ANONYMOUS_USER, GROUP_AUTHENTICATED, type UserInfo } from '../../api/kube/user.ts'
import { resourceName } from '../../api/ports/resource-kind.ts'
import { UserError } from '../../api/validation/field-errors.ts'

export type Role = 'admin' | 'view'

export interface Subjects {
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

export type RoleBindings = Readonly<Record<Role, Subjects>>

export interface ResourceAttributes {
  /** get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verb: string
  /** '' = the core group. */
  readonly group: string
  /** The plural. */
  readonly resource: string
  /** '' = none, as for the next two. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

export interface PathAttributes {
  /** The HTTP method in lower case. */
  readonly verb: string
  /** Without the query. */
  readonly path: string
}

export type Attributes = ResourceAttributes | PathAttributes

export type Authorizer = (user: UserInfo | 'anonymous', attributes: Attributes) => boolean

/** Verbs that change nothing. */
export const READING_VERBS: readonly string[] = ['get', 'list', 'watch']
/** Paths that anybody may read, including those below. */
export const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz', '/version']
/** Paths that every authenticated user may read, including those below. */
export const DISCOVERY_PATHS: readonly string[] = ['/api', '/apis', '/openapi']
/** Group and resource of the self reviews that every authenticated user may create. */
export const SELF_REVIEWS: readonly (readonly [group: string, resource: string])[] = [
  ['authentication.k8s.io', 'selfsubjectreviews'],
  ['authorization.k8s.io', 'selfsubjectaccessreviews'],
  ['authorization.k8s.io', 'selfsubjectrulesreviews'],
]

const DEFAULT_BINDINGS: RoleBindings = {
  admin: { users: [], groups: ['portcullis:admins'] },
  view: { users: [], groups: ['portcullis:viewers'] },
}

/**
 * The default bindings (groups portcullis:admins and portcullis:viewers) and those of the command line.
 * @param admin, view each `user:NAME` or `group:NAME`
 * @throws {UserError}
 */
export function roleBindings(admin: readonly string[], view: readonly string[]): RoleBindings {
  return {
    admin: withSubjects(DEFAULT_BINDINGS.admin, admin),
    view: withSubjects(DEFAULT_BINDINGS.view, view),
  }
}

export function createAuthorizer(bindings: RoleBindings): Authorizer {
  return (user, attributes) => {
    if (user === 'anonymous' || user.name === ANONYMOUS_USER) return allowedToAnybody(attributes)
    const role = roleOf(bindings, user)
    if (role === 'admin') return true
    return (
      allowedToAnybody(attributes) ||
      (user.groups.includes(GROUP_AUTHENTICATED) && allowedToAuthenticated(attributes)) ||
      (role === 'view' && allowedToViewers(attributes))
    )
  }
}

/** The more powerful role of the user; undefined = none. */
export function roleOf(bindings: RoleBindings, user: UserInfo): Role | undefined {
  if (user.name === ANONYMOUS_USER) return undefined
  if (isBound(bindings.admin, user)) return 'admin'
  return isBound(bindings.view, user) ? 'view' : undefined
}

/** 403 with kube-apiserver's message (apiserver/pkg/endpoints/handlers/responsewriters/errors.go). */
export function forbidden(user: UserInfo | 'anonymous', attributes: Attributes): Status {
  const reason = forbiddenMessage(user, attributes)
  if ('path' in attributes) return failure('Forbidden', `forbidden: ${reason}`, {})
  const { group, resource, name } = attributes
  const what = resourceName({ group, plural: resource })
  const named = name === '' ? what : `${what} ${JSON.stringify(name)}`
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: resource }
  return failure('Forbidden', `${named} is forbidden: ${reason}`, details)
}

/** The part after `is forbidden: `. */
export function forbiddenMessage(user: UserInfo | 'anonymous', attributes: Attributes): string {
  const name = JSON.stringify(user === 'anonymous' ? ANONYMOUS_USER : user.name)
  return escaped(`User ${name} cannot ${attributes.verb} ${whatOf(attributes)}`)
}

function whatOf(attributes: Attributes): string {
  if ('path' in attributes) return `path ${JSON.stringify(attributes.path)}`
  const { group, resource, subresource, namespace } = attributes
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  return `resource ${JSON.stringify(full)} in API group ${JSON.stringify(group)} ${where}`
}

/** Escaped, so that no browser takes the message for HTML. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function allowedToAnybody(attributes: Attributes): boolean {
  return 'path' in attributes && isReading(attributes) && isBelow(attributes.path, HEALTH_PATHS)
}

function allowedToAuthenticated(attributes: Attributes): boolean {
  if ('path' in attributes) return isReading(attributes) && isBelow(attributes.path, DISCOVERY_PATHS)
  const { verb, group, resource, subresource } = attributes
  if (verb !== 'create' || subresource !== '') return false
  return SELF_REVIEWS.some(([ownGroup, own]) => group === ownGroup && resource === own)
}

/** Secrets hold credentials: whoever reads them has them. */
function allowedToViewers(attributes: Attributes): boolean {
  if ('path' in attributes) return false
  const isSecret = attributes.group === '' && attributes.resource === 'secrets'
  const isAnything = attributes.resource === '*' || attributes.group === '*'
  return !isSecret && !isAnything && READING_VERBS.includes(attributes.verb)
}

function isReading({ verb }: PathAttributes): boolean {
  return verb === 'get' || verb === 'head'
}

function isBelow(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(`${root}/`))
}

function isBound(subjects: Subjects, user: UserInfo): boolean {
  return subjects.users.includes(user.name) || user.groups.some((group) => subjects.groups.includes(group))
}

function withSubjects(defaults: Subjects, given: readonly string[]): Subjects {
  const users = [...defaults.users]
  const groups = [...defaults.groups]
  for (const subject of given) {
    const colon = subject.indexOf(':')
    const kind = subject.slice(0, colon)
    const name = subject.slice(colon + 1)
    if (name === '' || (kind !== 'user' && kind !== 'group')) {
      throw new UserError(`not a user or group: ${subject}`, 'write user:NAME or group:NAME')
    }
    if (name === ANONYMOUS_USER) throw new UserError(`${name} may have no role`, 'name users who authenticate')
    if (kind === 'user') users.push(name)
    else groups.push(name)
  }
  return { users, groups }
}
