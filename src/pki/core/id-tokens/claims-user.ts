// Maps the claims of an ID token to a user, like kube-apiserver's OIDC authenticator (apiserver/plugin/pkg/authenticator/token/oidc/oidc.go), but
// stricter: names reserved by Kubernetes or Portcullis are refused.

import { evaluate } from '../../../kit/api/expressions/evaluate.ts'
import { type Expression, isInvalidExpression, parseExpression } from '../../../kit/api/expressions/expression.ts'
import { Cost, ExpressionFault } from '../../../kit/api/expressions/values.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import { CREDENTIAL_ID_KEY } from '../user-from-cert.ts'
import type { ClaimMapping, IssuerExpressions, IssuerRules, ValidationRule } from './issuer-rules.ts'

/** Why a token is refused: the label of a metric, so a closed set. */
export type TokenFault =
  | 'malformed'
  | 'algorithm'
  | 'unknown-key'
  | 'audience'
  | 'expired'
  | 'not-yet-valid'
  | 'claims'
  | 'expression'
  | 'reserved-name'

/** A rejected token; the message never repeats the token. */
export interface RefusedClaims {
  readonly refused: TokenFault
  readonly message: string
}

export type Claims = Readonly<Record<string, unknown>>

/** Tolerated clock skew between issuer and gateway for `nbf` and `iat` (github.com/coreos/go-oidc, verify.go). */
const SKEW_SECONDS = 5 * 60
const EMAIL = 'email'
/** Prefixes of names that have, or may get, a special meaning. */
const RESERVED_PREFIXES = ['system:', 'portcullis:'] as const
/** More would not fit into a kube-apiserver's header either. */
const MAX_GROUPS = 1_000

/** Checks that the token is for us and currently valid. undefined = it is. */
export function checkAudienceAndTimes(
  claims: Claims,
  { audiences }: Pick<IssuerRules, 'audiences'>,
  nowSeconds: number,
): RefusedClaims | undefined {
  const { aud, exp, nbf, iat } = claims as { aud?: unknown; exp?: unknown; nbf?: unknown; iat?: unknown }
  const given = new Set<unknown>(Array.isArray(aud) ? aud : [aud])
  if (!audiences.some((audience) => given.has(audience))) {
    return refuse('audience', `the audience is not ${audiences.map((one) => JSON.stringify(one)).join(' or ')}`)
  }
  if (typeof exp !== 'number') return refuse('claims', 'the exp claim is missing or not a number')
  if (exp <= nowSeconds) return refuse('expired', 'the token has expired')
  for (const [name, value] of Object.entries({ nbf, iat })) {
    if (value === undefined) continue
    if (typeof value !== 'number') return refuse('claims', `the claim ${name} is not a number`)
    if (value > nowSeconds + SKEW_SECONDS) {
      return refuse('not-yet-valid', `the claim ${name} is more than five minutes in the future`)
    }
  }
  return undefined
}

/** The user of claims that are signed, for us and valid. Does not add system:authenticated. */
export function userFromClaims(claims: Claims, rules: IssuerRules): UserInfo | RefusedClaims {
  const { expressions } = rules
  try {
    return userBy(claims, rules, expressions && new TokenExpressions(expressions, claims))
  } catch (error) {
    if (error instanceof ExpressionFault) return refuse('expression', error.message)
    throw error
  }
}

/** @throws {ExpressionFault} */
function userBy(
  claims: Claims,
  rules: IssuerRules,
  expressions: TokenExpressions | undefined,
): UserInfo | RefusedClaims {
  const name = expressions?.username() ?? usernameOf(claims, rules.username)
  if (typeof name !== 'string') return name
  const groups = expressions?.groups() ?? groupsOf(claims, rules.groups)
  if ('refused' in groups) return groups
  const uid = expressions?.uid() ?? (rules.uidClaim === '' ? '' : own(claims, rules.uidClaim))
  if (typeof uid !== 'string') return refuse('claims', `the claim ${rules.uidClaim}, which is the uid, is not a text`)
  const user = { name, uid, groups, extra: { ...credentialId(claims), ...expressions?.extra() } }
  for (const [claim, wanted] of Object.entries(rules.requiredClaims)) {
    if (own(claims, claim) === wanted) continue
    return refuse('claims', `the claim ${claim} is not ${JSON.stringify(wanted)}`)
  }
  expressions?.checkClaims()
  expressions?.checkUser(user)
  return refuseNames(user) ?? user
}

function credentialId(claims: Claims): UserInfo['extra'] {
  const { jti } = claims as { jti?: unknown }
  return typeof jti === 'string' && jti !== '' ? { [CREDENTIAL_ID_KEY]: [`JTI=${jti}`] } : {}
}

function refuseNames({ name, uid, groups, extra }: UserInfo): RefusedClaims | undefined {
  const texts = [name, uid, ...groups, ...Object.values(extra).flat()]
  if (texts.some(hasUnknownCharacters)) return refuse('claims', 'a name has characters that are not Unicode')
  const reserved = RESERVED_PREFIXES.join(' or ')
  if (isReservedName(name)) return refuse('reserved-name', `the user name begins with ${reserved}`)
  if (groups.some(isReservedName)) return refuse('reserved-name', `a group begins with ${reserved}`)
  return groups.length > MAX_GROUPS ? refuse('claims', `there are more than ${MAX_GROUPS} groups`) : undefined
}

export function isRefusedClaims(result: object): result is RefusedClaims {
  return 'refused' in result
}

function usernameOf(claims: Claims, { claim, prefix }: ClaimMapping): string | RefusedClaims {
  const value = own(claims, claim)
  if (typeof value !== 'string' || value === '') {
    return refuse('claims', `the claim ${claim}, which names the user, is not a text`)
  }
  // OpenID Connect Core, section 5.1: if the issuer says so, the address is only the user's own claim.
  if (claim === EMAIL && Object.hasOwn(claims, 'email_verified') && claims['email_verified'] !== true) {
    return refuse('claims', 'the email address is not verified')
  }
  return `${prefix}${value}`
}

/** A single group as a string, or a list. */
function groupsOf(claims: Claims, mapping: ClaimMapping | undefined): readonly string[] | RefusedClaims {
  if (mapping === undefined) return []
  const { claim, prefix } = mapping
  const value = own(claims, claim)
  if (value === undefined || value === null) return []
  const groups: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (groups.length > MAX_GROUPS) return refuse('claims', `the claim ${claim} has more than ${MAX_GROUPS} groups`)
  const names: string[] = []
  for (const group of groups) {
    if (typeof group !== 'string') return refuse('claims', `the claim ${claim} is neither a text nor a list of texts`)
    names.push(`${prefix}${group}`)
  }
  return names
}

/** What is not UTF-8, and half a surrogate pair: how many characters that makes, Go counts in another way, so that another user would be meant. */
function hasUnknownCharacters(text: string): boolean {
  return text.toWellFormed().includes('\ufffd')
}

function isReservedName(name: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix))
}

function own(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined
}

function refuse(refused: TokenFault, message: string): RefusedClaims {
  return { refused, message }
}

// The expressions of an issuer, parsed once, and what they say about the claims and the user of a token. All of them together may cost as much as one.

interface ParsedRule {
  readonly expression: Expression
  readonly message: string
}

interface Parsed {
  readonly username: Expression | undefined
  readonly groups: Expression | undefined
  readonly uid: Expression | undefined
  readonly extra: readonly { readonly key: string; readonly expression: Expression }[]
  readonly claimRules: readonly ParsedRule[]
  readonly userRules: readonly ParsedRule[]
}

/** Whatever is wrong is an ExpressionFault. */
class TokenExpressions {
  readonly #parsed: Parsed
  readonly #claims: unknown
  readonly #cost = new Cost()

  /** @param claims of a token that is signed, for us and valid */
  constructor(expressions: IssuerExpressions, claims: unknown) {
    this.#parsed = parsedOf(expressions)
    this.#claims = claims
  }

  /** undefined = a claim names the user. */
  username(): string | undefined {
    const name = this.#text(this.#parsed.username, 'username')
    if (name === '') throw new ExpressionFault('the expression of the user name is empty')
    return name
  }

  /** undefined = a claim has the groups, or there are none. */
  groups(): readonly string[] | undefined {
    const { groups } = this.#parsed
    return groups === undefined ? undefined : textsOf(this.#ofClaims(groups))
  }

  /** undefined = a claim is the uid, or there is none. */
  uid(): string | undefined {
    return this.#text(this.#parsed.uid, 'uid')
  }

  /** Keys without a value are left out. */
  extra(): Readonly<Record<string, readonly string[]>> {
    const all = this.#parsed.extra.map(({ key, expression }) => [key, textsOf(this.#ofClaims(expression))] as const)
    return Object.fromEntries(all.filter(([, values]) => values.length > 0))
  }

  checkClaims(): void {
    for (const rule of this.#parsed.claimRules) check(rule, this.#ofClaims(rule.expression))
  }

  checkUser({ name, uid, groups, extra }: UserInfo): void {
    const user = { username: name, uid, groups, extra }
    for (const rule of this.#parsed.userRules) check(rule, evaluate(rule.expression, user, this.#cost))
  }

  #ofClaims(expression: Expression): unknown {
    return evaluate(expression, this.#claims, this.#cost)
  }

  #text(expression: Expression | undefined, what: string): string | undefined {
    if (expression === undefined) return undefined
    const value = this.#ofClaims(expression)
    if (typeof value !== 'string') throw new ExpressionFault(`the expression of the ${what} is not a text`)
    return value
  }
}

/** A text or a list of texts; empty ones, and null, are none. */
function textsOf(value: unknown): readonly string[] {
  if (value === null) return []
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.flatMap((one) => {
    if (typeof one !== 'string') throw new ExpressionFault('an expression is neither a text nor a list of texts')
    return one === '' ? [] : [one]
  })
}

function check({ message }: ParsedRule, result: unknown): void {
  if (result !== true) throw new ExpressionFault(`a rule does not hold: ${message}`)
}

const parsedExpressions = new WeakMap<IssuerExpressions, Parsed>()

function parsedOf(expressions: IssuerExpressions): Parsed {
  const known = parsedExpressions.get(expressions)
  if (known !== undefined) return known
  const optional = (text: string): Expression | undefined => (text === '' ? undefined : parse(text, 'claims'))
  const { username, groups, uid, extra, claimRules, userRules } = expressions
  const fresh: Parsed = {
    username: optional(username),
    groups: optional(groups),
    uid: optional(uid),
    extra: extra.map(({ key, expression }) => ({ key, expression: parse(expression, 'claims') })),
    claimRules: claimRules.map((rule) => parseRule(rule, 'claims')),
    userRules: userRules.map((rule) => parseRule(rule, 'user')),
  }
  parsedExpressions.set(expressions, fresh)
  return fresh
}

function parseRule({ expression, message }: ValidationRule, subject: 'claims' | 'user'): ParsedRule {
  return { expression: parse(expression, subject, 'bool'), message: message === '' ? expression : message }
}

/** Checked when the object was written. One that was not refuses every token. */
function parse(text: string, subject: 'claims' | 'user', type?: 'bool'): Expression {
  const parsed = parseExpression(text, subject, type)
  if (isInvalidExpression(parsed)) throw new ExpressionFault(`${text} ${parsed.invalid}`)
  return parsed
}
