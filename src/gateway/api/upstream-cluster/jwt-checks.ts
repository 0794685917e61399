// spec.authentication.jwt: what kube-apiserver checks of a JWTAuthenticator (k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go), and what
// the gateway would never accept.

import {
  type Expression,
  type ExpressionSubject,
  isInvalidExpression,
  parseExpression,
  usesField,
} from '../../../kit/api/expressions/expression.ts'
import { newPatternCost } from '../../../kit/api/expressions/patterns.ts'
import type { Cost } from '../../../kit/api/expressions/values.ts'
import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown, withoutPassword } from '../../../kit/api/validation/field-errors.ts'
import { ALLOW_LOCAL_FLAG } from '../../../kit/api/validation/local-address.ts'
import { isObjectName } from '../../../kit/api/validation/name-syntax.ts'
import type { PemChecks } from '../../../kit/api/validation/pem-checks.ts'
import type { JwtAuthenticator } from './upstream-cluster.ts'

export interface JwtCheckOptions {
  readonly pem: PemChecks
  /** Why the gateway refuses to connect to this server; '' = it connects, or cannot know. */
  readonly serverRefusal: (host: string, port: number) => string
}

type Given = Loose<JwtAuthenticator>
type Mappings = NonNullable<Given['claimMappings']>
type Mapping = NonNullable<Mappings['username']>
type Extra = NonNullable<Mappings['extra']>

const HTTPS_PORT = 443
/** RFC 3986, as kube-apiserver checks the path of a key. */
const PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/
/** No token may give a user or a group such a name. */
const RESERVED = ['system:', 'portcullis:']

/** What expressions are checked with. */
interface ExpressionChecks {
  readonly out: FieldErrors
  /** What all patterns of the object may cost. */
  readonly patterns: Cost
}

export function checkJwt(
  authenticators: readonly (Given | undefined)[],
  path: string,
  options: JwtCheckOptions,
  out: FieldErrors,
): void {
  const urls = new Set<string>()
  const discoveryUrls = new Set<string>()
  const checks = { out, patterns: newPatternCost() }
  for (const [index, one] of authenticators.entries()) {
    if (one === undefined) continue
    const at = `${path}[${index}]`
    const { url = '', discoveryURL = '' } = one.issuer ?? {}
    if (one.issuer !== undefined) checkIssuer(one.issuer, `${at}.issuer`, options, out)
    if (urls.has(url)) out.duplicate(`${at}.issuer.url`, `${shown(url)} has an entry already`, 'remove one of the two')
    if (discoveryUrls.has(discoveryURL)) {
      out.duplicate(`${at}.issuer.discoveryURL`, `${shown(discoveryURL)} has an entry already`, 'remove one of the two')
    }
    if (url !== '') urls.add(url)
    if (discoveryURL !== '') discoveryUrls.add(discoveryURL)
    const rules = checkClaimRules(one.claimValidationRules ?? [], `${at}.claimValidationRules`, checks)
    if (one.claimMappings !== undefined) checkMappings(one.claimMappings, rules, `${at}.claimMappings`, checks)
    checkUserRules(one.userValidationRules ?? [], `${at}.userValidationRules`, checks)
  }
}

function checkIssuer(
  { url, discoveryURL = '', certificateAuthority = '', audiences, audienceMatchPolicy }: NonNullable<Given['issuer']>,
  path: string,
  { pem, serverRefusal }: JwtCheckOptions,
  out: FieldErrors,
): void {
  if (url === '') out.required(`${path}.url`, 'is empty', 'write the issuer as its tokens have it in iss')
  const isUrl = url !== undefined && url !== '' && checkUrl(url, `${path}.url`, out)
  const isDiscovery = discoveryURL !== '' && checkUrl(discoveryURL, `${path}.discoveryURL`, out)
  if (isDiscovery && url !== undefined && withoutSlashes(url) === withoutSlashes(discoveryURL)) {
    const fix = 'write the whole URL of the OpenID configuration, or remove it'
    out.invalid(`${path}.discoveryURL`, 'must be different from url', fix)
  }
  if (isDiscovery) checkReachable(discoveryURL, `${path}.discoveryURL`, serverRefusal, out)
  else if (isUrl && discoveryURL === '') checkReachable(url, `${path}.url`, serverRefusal, out)
  const caError = certificateAuthority === '' ? '' : pem.certificatesError(certificateAuthority)
  if (caError !== '') out.invalid(`${path}.certificateAuthority`, caError, 'write CA certificates: PEM')
  const seen = new Set<string>()
  for (const [index, audience] of (audiences ?? []).entries()) {
    const at = `${path}.audiences[${index}]`
    if (audience === '') out.required(at, 'is empty', 'name an audience')
    else if (audience !== undefined && seen.has(audience)) out.duplicate(at, 'is named twice', 'remove one of the two')
    if (audience !== undefined) seen.add(audience)
  }
  if ((audiences ?? []).length > 1 && audienceMatchPolicy !== 'MatchAny') {
    out.invalid(`${path}.audienceMatchPolicy`, 'must be MatchAny for multiple audiences', 'write MatchAny')
  }
}

function withoutSlashes(url: string): string {
  let end = url.length
  while (url[end - 1] === '/') end--
  return url.slice(0, end)
}

/** @returns whether it is one */
function checkUrl(text: string, path: string, out: FieldErrors): boolean {
  const fix = 'write an https URL without query, fragment and user, such as https://login.example.com/realms/ops'
  const name = shown(withoutPassword(text))
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !text.startsWith('https://')) {
    out.invalid(path, `${name} is not an https URL`, fix)
    return false
  }
  const { username, password } = url
  if (username !== '' || password !== '') out.invalid(path, 'must not contain a username or password', fix)
  else if (text.includes('?')) out.invalid(path, `${name} must not contain a query`, fix)
  else if (text.includes('#')) out.invalid(path, `${name} must not contain a fragment`, fix)
  else return true
  return false
}

function checkReachable(
  text: string,
  path: string,
  serverRefusal: JwtCheckOptions['serverRefusal'],
  out: FieldErrors,
): void {
  const { hostname, port } = new URL(text)
  const refusal = serverRefusal(hostname.replace(/^\[|\]$/g, ''), Number(port) || HTTPS_PORT)
  if (refusal === '') return
  const message = `${refusal}: the gateway does not connect to it unless the operator allows it`
  const fix = `name a provider on another machine, or start the gateway with ${ALLOW_LOCAL_FLAG}=ADDRESS:PORT`
  out.warning(path, message, fix)
}

/** @returns the expressions among them */
function checkClaimRules(
  rules: NonNullable<Given['claimValidationRules']>,
  path: string,
  checks: ExpressionChecks,
): readonly Expression[] {
  const { out } = checks
  const claims = new Set<string>()
  const expressions = new Set<string>()
  const parsed: Expression[] = []
  for (const [index, rule] of rules.entries()) {
    if (rule === undefined) continue
    const at = `${path}[${index}]`
    const { claim = '', requiredValue = '', expression = '', message = '' } = rule
    if (!checkChoice(claim, expression, at, true, out)) continue
    if (claim === '') {
      if (requiredValue !== '') {
        out.invalid(`${at}.requiredValue`, 'may not be specified when expression is set', 'remove it')
      }
      checkOnce(expression, expressions, `${at}.expression`, out)
      const one = checkExpression(expression, 'claims', `${at}.expression`, checks, 'bool')
      if (one !== undefined) parsed.push(one)
      continue
    }
    if (message !== '') out.invalid(`${at}.message`, 'may not be specified when claim is set', 'remove it')
    checkOnce(claim, claims, `${at}.claim`, out)
  }
  return parsed
}

function checkOnce(text: string, seen: Set<string>, path: string, out: FieldErrors): void {
  if (seen.has(text)) out.duplicate(path, `${shown(text)} is there twice`, 'remove one of the two')
  seen.add(text)
}

/** @returns undefined = it is invalid, which has been reported */
function checkExpression(
  text: string,
  subject: ExpressionSubject,
  path: string,
  { out, patterns }: ExpressionChecks,
  type?: 'bool',
): Expression | undefined {
  const parsed = parseExpression(text, subject, type, patterns)
  if (!isInvalidExpression(parsed)) return parsed
  out.invalid(path, parsed.invalid, `write an expression in CEL about ${subject}`)
  return undefined
}

/** @returns whether exactly one of the two is given, or neither is needed */
function checkChoice(claim: string, expression: string, path: string, needed: boolean, out: FieldErrors): boolean {
  if (claim !== '' && expression !== '') {
    out.invalid(path, "claim and expression can't both be set", 'remove one of the two')
    return false
  }
  if (claim !== '' || expression !== '' || !needed) return true
  out.required(path, 'claim or expression is required', 'name the claim')
  return false
}

/** @param rules the expressions among the rules for claims */
function checkMappings(
  { username, groups, uid, extra }: Mappings,
  rules: readonly Expression[],
  path: string,
  checks: ExpressionChecks,
): void {
  const { out } = checks
  const name = username && checkMapping(username, `${path}.username`, true, checks)
  if (groups !== undefined) checkMapping(groups, `${path}.groups`, false, checks)
  const { claim = '', expression = '' } = uid ?? {}
  if (checkChoice(claim, expression, `${path}.uid`, false, out) && expression !== '') {
    checkExpression(expression, 'claims', `${path}.uid.expression`, checks)
  }
  const others = [...checkExtra(extra ?? [], `${path}.extra`, checks), ...rules]
  if (name === undefined || !usesField(name, 'email')) return
  if ([name, ...others].some((one) => usesField(one, 'email_verified'))) return
  const message =
    'uses claims.email: then claims.email_verified must be used in it, in extra or in claimValidationRules'
  out.invalid(`${path}.username.expression`, message, 'add the rule claims.?email_verified.orValue(true) == true')
}

/** @returns its expression; undefined = it has none that is valid */
function checkMapping(
  { claim = '', prefix, expression = '' }: Mapping,
  path: string,
  needed: boolean,
  checks: ExpressionChecks,
): Expression | undefined {
  const { out } = checks
  if (!checkChoice(claim, expression, path, needed, out)) return undefined
  if (expression !== '') {
    if (prefix !== undefined) {
      out.invalid(`${path}.prefix`, 'may not be specified when expression is set', 'remove it')
    }
    return checkExpression(expression, 'claims', `${path}.expression`, checks)
  }
  if (claim !== '' && prefix === undefined) {
    const message = 'is required when claim is set'
    out.required(`${path}.prefix`, message, 'write the prefix of names; "" means none')
  }
  const reserved = RESERVED.find((one) => prefix?.startsWith(one) === true)
  if (reserved !== undefined) {
    const message = `begins with ${reserved}: names that begin so are reserved, so that every token would be refused`
    out.invalid(`${path}.prefix`, message, 'write another prefix, such as oidc:')
  }
  return undefined
}

/** @returns the valid ones of their expressions */
function checkExtra(extra: Extra, path: string, checks: ExpressionChecks): readonly Expression[] {
  const { out } = checks
  const keys = new Set<string>()
  return extra.flatMap((mapping, index) => {
    if (mapping === undefined) return []
    const at = `${path}[${index}]`
    const { key = '', valueExpression = '' } = mapping
    checkExtraKey(key, `${at}.key`, out)
    checkOnce(key, keys, `${at}.key`, out)
    if (valueExpression === '') {
      out.required(`${at}.valueExpression`, 'is empty', 'write an expression')
      return []
    }
    return checkExpression(valueExpression, 'claims', `${at}.valueExpression`, checks) ?? []
  })
}

function checkExtraKey(key: string, path: string, out: FieldErrors): void {
  const slash = key.indexOf('/')
  const domain = key.slice(0, Math.max(0, slash))
  const fix = 'write a key with your domain in front, in lower case, such as example.com/team'
  if (!isObjectName(domain.toLowerCase()) || !PATH.test(key.slice(slash + 1))) {
    out.invalid(path, `${shown(key)} must be a domain-prefixed path`, fix)
  } else if (key !== key.toLowerCase()) out.invalid(path, `${shown(key)} must be lowercase`, fix)
  else if (isKubernetesDomain(domain)) {
    const message = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'
    out.invalid(path, `${shown(key)}: ${message}`, fix)
  }
}

function isKubernetesDomain(domain: string): boolean {
  return ['kubernetes.io', 'k8s.io'].some((one) => domain === one || domain.endsWith(`.${one}`))
}

function checkUserRules(
  rules: NonNullable<Given['userValidationRules']>,
  path: string,
  checks: ExpressionChecks,
): void {
  const { out } = checks
  const expressions = new Set<string>()
  for (const [index, rule] of rules.entries()) {
    if (rule === undefined) continue
    const at = `${path}[${index}].expression`
    const { expression = '' } = rule
    if (expression === '') {
      out.required(at, 'is empty', 'write an expression')
      continue
    }
    checkOnce(expression, expressions, at, out)
    checkExpression(expression, 'user', at, checks, 'bool')
  }
}
