// Identity on the wire: the Impersonate-* fields that the gateway sends, and those that a client sends (kubectl --as), parsed like
// kube-apiserver (apiserver/pkg/endpoints/filters/impersonation/impersonation.go).

import type { HeaderList } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import {
  ANONYMOUS_USER,
  GROUP_AUTHENTICATED,
  GROUP_SERVICE_ACCOUNTS,
  GROUP_UNAUTHENTICATED,
  SERVICE_ACCOUNT_PREFIX,
  type UserInfo,
} from '../../../kube/api/user.ts'
import { decodeUtf8, encodeUtf8 } from '../request/hop-headers.ts'

/** The requested identity, exactly as in the client's headers. */
export interface ClientImpersonation {
  /** Never empty. */
  readonly name: string
  /** '' = none requested. */
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** authorization.k8s.io/v1 ResourceAttributes of one review; '' = none. */
export interface AccessReviewAttributes {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** Default: any. */
  readonly version?: string
  /** As in the query of the request. Default: none; an authorizer may allow only what is selected. */
  readonly fieldSelector?: RawSelector
  readonly labelSelector?: RawSelector
}

/** kube-apiserver parses it; the alternative, requirements, must not be there then. */
interface RawSelector {
  readonly rawSelector: string
}

const USER = 'impersonate-user'
const GROUP = 'impersonate-group'
const UID = 'impersonate-uid'
const EXTRA_PREFIX = 'impersonate-extra-'
const AUTHENTICATION_GROUP = 'authentication.k8s.io'
/** Each value costs one access review, so their number is bounded. */
const MAX_IMPERSONATED_VALUES = 256
/**
 * Names and values together: 256 groups of 239 characters each. They are decoded, reviewed, and encoded again on one thread, and the
 * identity is kept for as long as the request runs.
 */
const MAX_IMPERSONATED_BYTES: number = 64 * 1024

/**
 * The fields that make upstream see `user`. Only for users without an `identityProblem`. Depends on the user alone, so the result may be
 * cached with the identity.
 */
export function identityHeaders(user: UserInfo): HeaderList {
  const list: HeaderList = [USER, encodeUtf8(user.name)]
  for (const group of user.groups) list.push(GROUP, encodeUtf8(group))
  if (user.uid !== '') list.push(UID, encodeUtf8(user.uid))
  for (const [key, values] of Object.entries(user.extra)) {
    const name = EXTRA_PREFIX + escapeExtraKey(key)
    for (const value of values) list.push(name, encodeUtf8(value))
  }
  return list
}

/**
 * Why `user` can't be encoded in header fields so that upstream sees exactly this user; '' = it can. Otherwise the request must not be
 * forwarded: without an identity it would run with the gateway's own rights.
 */
export function identityProblem(user: UserInfo): string {
  if (user.name === '') return 'the user has no name'
  // Without groups upstream adds defaults: a service account would get the groups of all service accounts.
  if (user.groups.length === 0) return 'the user has no groups'
  const problem = valueProblem('name', user.name) || valueProblem('uid', user.uid)
  if (problem !== '') return problem
  for (const group of user.groups) {
    const groupProblem = valueProblem('group', group)
    if (groupProblem !== '') return groupProblem
  }
  for (const [key, values] of Object.entries(user.extra)) {
    if (!key.isWellFormed()) return 'an extra key is not valid Unicode'
    for (const value of values) {
      const extraProblem = valueProblem(`extra ${JSON.stringify(key)}`, value)
      if (extraProblem !== '') return extraProblem
    }
  }
  return ''
}

/**
 * The identity that the client requests; undefined if none, which includes an empty Impersonate-User. Of several Impersonate-User or -Uid
 * lines the first counts, as in kube-apiserver; none of them is forwarded.
 */
export function readImpersonation(list: HeaderList): ClientImpersonation | undefined | Refusal {
  let name: string | undefined
  let uid: string | undefined
  const groups: string[] = []
  let extra: Map<string, string[]> | undefined
  let count = 0
  let bytes = 0
  for (let i = 0; i + 1 < list.length; i += 2) {
    const field = list[i] ?? ''
    // 'impersonate-' has 12 characters; nearly every field is skipped here.
    if (field.length < 12 || (field.charCodeAt(0) | 0x20) !== 0x69) continue
    const lower = field.toLowerCase()
    if (lower !== USER && lower !== GROUP && lower !== UID && !lower.startsWith(EXTRA_PREFIX)) continue
    const sent = list[i + 1] ?? ''
    bytes += field.length + sent.length
    if (bytes > MAX_IMPERSONATED_BYTES)
      return invalid(`more than ${MAX_IMPERSONATED_BYTES} bytes of Impersonate-* fields`)
    const value = decodeUtf8(sent)
    const key = lower.startsWith(EXTRA_PREFIX) ? unescapeExtraKey(lower.slice(EXTRA_PREFIX.length)) : ''
    if (value === undefined || key === undefined) return invalid(`${lower} is not valid UTF-8`)
    if (++count > MAX_IMPERSONATED_VALUES) return invalid(`more than ${MAX_IMPERSONATED_VALUES} Impersonate-* values`)
    if (lower === USER) name ??= value
    else if (lower === UID) uid ??= value
    else if (lower === GROUP) groups.push(value)
    else {
      extra ??= new Map()
      const values = extra.get(key)
      if (values === undefined) extra.set(key, [value])
      else values.push(value)
    }
  }
  if (name === undefined || name === '') {
    if (groups.length === 0 && extra === undefined && (uid === undefined || uid === '')) return undefined
    return invalid('impersonation of groups, uid or extra fields was requested without impersonating a user name')
  }
  // fromEntries, because a key may be `__proto__`.
  const wanted = { name, uid: uid ?? '', groups, extra: Object.fromEntries(extra ?? []) }
  const problem = identityProblem(impersonatedUser(wanted))
  return problem === '' ? wanted : invalid(`the impersonated user cannot be forwarded: ${problem}`)
}

/** What the original user must be allowed: verb `impersonate` on every single item. */
export function impersonationReviews(wanted: ClientImpersonation): readonly AccessReviewAttributes[] {
  const account = splitServiceAccount(wanted.name)
  const reviews: AccessReviewAttributes[] = [
    account === undefined
      ? review('', 'users', '', '', wanted.name)
      : review('', 'serviceaccounts', '', account.namespace, account.name),
  ]
  for (const group of new Set(wanted.groups)) reviews.push(review('', 'groups', '', '', group))
  for (const [key, values] of Object.entries(wanted.extra)) {
    for (const value of new Set(values)) reviews.push(review(AUTHENTICATION_GROUP, 'userextras', key, '', value))
  }
  if (wanted.uid !== '') reviews.push(review(AUTHENTICATION_GROUP, 'uids', '', '', wanted.uid))
  return reviews
}

/** The effective user of the request, with default groups if the client named none. */
export function impersonatedUser(wanted: ClientImpersonation): UserInfo {
  const groups = [...wanted.groups]
  const account = groups.length === 0 ? splitServiceAccount(wanted.name) : undefined
  if (account !== undefined) groups.push(GROUP_SERVICE_ACCOUNTS, `${GROUP_SERVICE_ACCOUNTS}:${account.namespace}`)
  if (wanted.name === ANONYMOUS_USER) {
    if (!groups.includes(GROUP_UNAUTHENTICATED)) groups.push(GROUP_UNAUTHENTICATED)
  } else if (!groups.includes(GROUP_AUTHENTICATED) && !groups.includes(GROUP_UNAUTHENTICATED)) {
    groups.push(GROUP_AUTHENTICATED)
  }
  return { name: wanted.name, uid: wanted.uid, groups, extra: wanted.extra }
}

/** The message of kube-apiserver's 403 (apiserver/pkg/endpoints/handlers/responsewriters/errors.go). */
export function impersonationForbiddenMessage(
  originalUser: Pick<UserInfo, 'name'>,
  attributes: AccessReviewAttributes,
  reason: string,
): string {
  const { verb, group, resource, subresource, namespace, name } = attributes
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  const path = subresource === '' ? resource : `${resource}/${subresource}`
  const cannot = `User ${JSON.stringify(originalUser.name)} cannot ${verb} resource ${JSON.stringify(path)} in API group ${JSON.stringify(group)} ${scope}`
  const subject = group === '' ? resource : `${resource}.${group}`
  const quoted = name === '' ? '' : ` ${JSON.stringify(name)}`
  return `${subject}${quoted} is forbidden: ${escapeHtml(cannot)}${reason === '' ? '' : `: ${reason}`}`
}

/** Checks that a value arrives unchanged, over HTTP/2 and over HTTP/1.1 (upgrades). */
function valueProblem(what: string, value: string): string {
  if (!value.isWellFormed()) return `${what} is not valid Unicode`
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    // CR, LF and NUL end or break a field; Go servers reset the stream for the others (httpguts.ValidHeaderFieldValue).
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return `${what} has a control character`
  }
  // HTTP/1.1 receivers trim it: " admin" would arrive as "admin".
  return isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1))
    ? `${what} begins or ends with a space`
    : ''
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/**
 * Encodes an extra key as a field name. The server lower-cases the name first, then percent-decodes it, so an upper-case letter survives
 * only escaped, and `%` must be escaped too. Hexadecimal digits are lower-case for HTTP/2.
 */
function escapeExtraKey(key: string): string {
  const bytes = encodeUtf8(key)
  let escaped = ''
  for (let i = 0; i < bytes.length; i++) {
    const char = bytes.charAt(i)
    escaped += /[!#$&'*+\-.^_`|~0-9a-z]/.test(char) ? char : `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  }
  return escaped
}

/** net/url PathUnescape; a malformed key is returned unchanged. undefined if the result is not UTF-8. */
function unescapeExtraKey(escaped: string): string | undefined {
  if (/%(?![0-9a-f]{2})/.test(escaped)) return decodeUtf8(escaped)
  return decodeUtf8(
    escaped.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  )
}

/** apiserver/pkg/authentication/serviceaccount/util.go SplitUsername: both parts must be valid names. */
function splitServiceAccount(name: string): { namespace: string; name: string } | undefined {
  if (!name.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined
  const [namespace, account, more] = name.slice(SERVICE_ACCOUNT_PREFIX.length).split(':')
  if (namespace === undefined || account === undefined || more !== undefined) return undefined
  const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
  if (namespace.length > 63 || !label.test(namespace)) return undefined
  if (account.length > 253 || !account.split('.').every((part) => label.test(part))) return undefined
  return { namespace, name: account }
}

function review(
  group: string,
  resource: string,
  subresource: string,
  namespace: string,
  name: string,
): AccessReviewAttributes {
  return { verb: 'impersonate', group, resource, subresource, namespace, name }
}

function invalid(message: string): Refusal {
  return refuse('impersonation-invalid', message)
}

/** Like Kubernetes, so that an error never looks like HTML. */
export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
