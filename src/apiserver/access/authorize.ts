// Authorization by two built-in roles, bound to users and groups, and roles that have rights on some kinds alone. `admin` may do everything, `view` may
// read everything except Secrets. Every authenticated user may use discovery and self reviews; anonymous users may only check whether
// the server is healthy. No group has rights by its name alone, not even system:masters.

import {
  type AccessReviewAttributes,
  escapeHtml,
  impersonatedUser,
  impersonationForbiddenMessage,
  impersonationReviews,
  readImpersonation,
} from '../../gateway/core/identity/impersonate.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isRefusal } from '../../kit/core/refusal/refusal.ts'
import type { KindRole } from '../../kube/api/kind-role.ts'
import { ADMIN_GROUP, VIEWER_GROUP } from '../../kube/api/own-names.ts'
import { failure, type Status, StatusError, statusError } from '../../kube/api/status.ts'
import { ANONYMOUS, ANONYMOUS_USER, GROUP_AUTHENTICATED, type UserInfo } from '../../kube/api/user.ts'

type Role = 'admin' | 'view'

interface Subjects {
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

/** A role of a subject that brings its kinds along, and who has it. */
interface BoundKindRole {
  readonly role: KindRole
  readonly subjects: Subjects
}

export interface RoleBindings extends Readonly<Record<Role, Subjects>> {
  readonly kinds: readonly BoundKindRole[]
}

export interface PathAttributes {
  /** The HTTP method in lower case. */
  readonly verb: string
  /** Without the query. */
  readonly path: string
}

export type Attributes = AccessReviewAttributes | PathAttributes

export type Authorizer = (user: UserInfo | 'anonymous', attributes: Attributes) => boolean

/** Verbs that change nothing. */
export const READING_VERBS: readonly string[] = ['get', 'list', 'watch']
/** Paths readable without authentication, including those below. */
export const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz', '/version']
/** Paths that every authenticated user may read, including those below. */
export const DISCOVERY_PATHS: readonly string[] = ['/api', '/apis', '/openapi']
/** Group and resource of the self reviews that every authenticated user may create. */
export const SELF_REVIEWS: readonly (readonly [group: string, resource: string])[] = [
  ['authentication.k8s.io', 'selfsubjectreviews'],
  ['authorization.k8s.io', 'selfsubjectaccessreviews'],
  ['authorization.k8s.io', 'selfsubjectrulesreviews'],
]

const DEFAULT_BINDINGS: Readonly<Record<Role, Subjects>> = {
  admin: { users: [], groups: [ADMIN_GROUP] },
  view: { users: [], groups: [VIEWER_GROUP] },
}

/**
 * The default bindings (groups portcullis:admins and portcullis:viewers) and those of the command line.
 * @param admin, view each `user:NAME` or `group:NAME`
 * @param kinds roles of some kinds alone, with the same. Default: none
 * @throws {UserError}
 */
export function roleBindings(
  admin: readonly string[],
  view: readonly string[],
  kinds: readonly { readonly role: KindRole; readonly given: readonly string[] }[] = [],
): RoleBindings {
  return {
    admin: withSubjects(DEFAULT_BINDINGS.admin, admin),
    view: withSubjects(DEFAULT_BINDINGS.view, view),
    kinds: kinds.map(({ role, given }) => ({
      role,
      subjects: withSubjects({ users: [], groups: [role.group] }, given),
    })),
  }
}

export function createAuthorizer(bindings: RoleBindings): Authorizer {
  return (user, attributes) => {
    if (user === 'anonymous' || user.name === ANONYMOUS_USER) return allowedUnauthenticated(attributes)
    const role = roleOf(bindings, user)
    if (role === 'admin') return true
    return (
      allowedUnauthenticated(attributes) ||
      (user.groups.includes(GROUP_AUTHENTICATED) && allowedToAuthenticated(attributes)) ||
      (role === 'view' && allowedToViewers(attributes)) ||
      kindRolesOf(bindings, user).some((one) => allowedByRole(one, attributes))
    )
  }
}

/** The user's more powerful role; undefined = none. */
export function roleOf(bindings: RoleBindings, user: UserInfo): Role | undefined {
  if (user.name === ANONYMOUS_USER) return undefined
  if (isBound(bindings.admin, user)) return 'admin'
  return isBound(bindings.view, user) ? 'view' : undefined
}

/** Roles of some kinds that the user has beside that role. */
export function kindRolesOf({ kinds }: RoleBindings, user: UserInfo): readonly KindRole[] {
  if (kinds.length === 0 || user.name === ANONYMOUS_USER) return NO_ROLES
  return kinds.filter(({ subjects }) => isBound(subjects, user)).map(({ role }) => role)
}

const NO_ROLES: readonly KindRole[] = []

function allowedByRole({ rules }: KindRole, attributes: Attributes): boolean {
  if ('path' in attributes) return false
  const { verb, group, resource, subresource } = attributes
  const asked = subresource === '' ? resource : `${resource}/${subresource}`
  return rules.some((rule) => rule.group === group && rule.verbs.includes(verb) && rule.resources.includes(asked))
}

/** 403 with kube-apiserver's message (apiserver/pkg/endpoints/handlers/responsewriters/errors.go). */
export function accessForbidden(user: UserInfo | 'anonymous', attributes: Attributes): Status {
  const who = user === 'anonymous' ? ANONYMOUS : user
  if ('path' in attributes) {
    const cannot = `User ${JSON.stringify(who.name)} cannot ${attributes.verb} path ${JSON.stringify(attributes.path)}`
    return failure('Forbidden', `forbidden: ${escapeHtml(cannot)}`, {})
  }
  const { group, resource, name } = attributes
  const details = { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: resource }
  return failure('Forbidden', impersonationForbiddenMessage(who, attributes, ''), details)
}

function allowedUnauthenticated(attributes: Attributes): boolean {
  return 'path' in attributes && isReading(attributes) && isBelow(attributes.path, HEALTH_PATHS)
}

function allowedToAuthenticated(attributes: Attributes): boolean {
  if ('path' in attributes) return isReading(attributes) && isBelow(attributes.path, DISCOVERY_PATHS)
  const { verb, group, resource, subresource } = attributes
  if (verb !== 'create' || subresource !== '') return false
  return SELF_REVIEWS.some(([ownGroup, own]) => group === ownGroup && resource === own)
}

/** Secrets hold credentials: reading them means having them. */
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

// `kubectl --as`: runs a request as another user, for callers who may impersonate (apiserver/pkg/endpoints/filters/impersonation).
// A server that ignored these headers would run a request with more rights than intended.

/**
 * The user that the request runs as: the caller, unless it impersonates another user.
 * @throws {StatusError} 403 if the caller may not impersonate everything it asks for, 400 if the headers are inconsistent
 */
export function effectiveUser(
  caller: UserInfo | 'anonymous',
  head: HeaderList,
  authorize: Authorizer,
): UserInfo | 'anonymous' {
  const wanted = readImpersonation(head)
  if (wanted === undefined) return caller
  if (isRefusal(wanted)) throw statusError('BadRequest', wanted.message)
  for (const attributes of impersonationReviews(wanted)) {
    if (!authorize(caller, attributes)) throw new StatusError(accessForbidden(caller, attributes))
  }
  return wanted.name === ANONYMOUS.name ? 'anonymous' : impersonatedUser(wanted)
}
