// Which rule of an audit policy a request matches, by kube-apiserver's rules (apiserver/pkg/audit/policy/checker.go): the first one; names
// are compared exactly, without patterns.

import type { AuditLevel, AuditStage } from '../../kube/api/audit.ts'
import type { AuditGroupResources, AuditPolicy, AuditRule } from './policy.ts'

/** What to record of a request. One shared object per rule. */
export interface AuditDecision {
  readonly level: AuditLevel
  readonly received: boolean
  readonly started: boolean
  readonly complete: boolean
  readonly panic: boolean
  readonly omitManagedFields: boolean
}

/** The relevant part of a RequestRecord. */
export interface AuditedRequest {
  readonly verb: string
  readonly isResourceRequest: boolean
  readonly path: string
  readonly apiGroup: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

/** The original user, not the impersonated one; '' and no groups if unauthenticated. */
interface AuditedUser {
  readonly name: string
  readonly groups: readonly string[]
}

interface CompiledAuditRule {
  readonly users: ReadonlySet<string> | undefined
  readonly userGroups: ReadonlySet<string> | undefined
  readonly verbs: ReadonlySet<string> | undefined
  readonly namespaces: ReadonlySet<string> | undefined
  readonly resources: readonly CompiledResources[] | undefined
  readonly paths: { readonly exact: ReadonlySet<string>; readonly prefixes: readonly string[] } | undefined
  readonly decision: AuditDecision
}

interface CompiledResources {
  readonly group: string
  /** Resources it names, without subresources. */
  readonly named: readonly string[]
  /** It also covers resources that it does not name. */
  readonly others: boolean
  /** `pods`, `pods/log`; undefined = all of the group. */
  readonly exact: ReadonlySet<string> | undefined
  readonly all: boolean
  /** From `pods/*`, which includes the resource itself. */
  readonly withAnySubresource: ReadonlySet<string>
  /** From entries that begin with `*` and a slash. */
  readonly subresources: ReadonlySet<string>
  readonly names: ReadonlySet<string> | undefined
}

/** Index by resource: most policies name resources, so a request is compared only with rules that may match it, however many there are. */
export class AuditRules {
  /** Rules by named resource, in policy order. */
  readonly #ofResource: ReadonlyMap<string, readonly CompiledAuditRule[]>
  /** Rules for all other resources. */
  readonly #ofOthers: readonly CompiledAuditRule[]
  readonly #ofNonResources: readonly CompiledAuditRule[]
  readonly #none: AuditDecision

  constructor(policy: AuditPolicy) {
    const rules = policy.rules.map((rule) => compileRule(rule, policy))
    const named = new Set(rules.flatMap(({ resources = [] }) => resources.flatMap((one) => one.named)))
    const about = (resource: string | undefined): readonly CompiledAuditRule[] =>
      rules.filter((rule) => canBeAbout(rule, resource))
    this.#ofResource = new Map([...named].map((resource) => [resource, about(resource)]))
    this.#ofOthers = about(undefined)
    this.#ofNonResources = rules.filter((rule) => rule.resources === undefined && rule.namespaces === undefined)
    this.#none = decisionOf('None', policy.omitStages, policy.omitManagedFields)
  }

  /** If no rule matches, nothing is recorded. */
  decide(request: AuditedRequest, user: AuditedUser): AuditDecision {
    const rules = request.isResourceRequest
      ? (this.#ofResource.get(request.resource) ?? this.#ofOthers)
      : this.#ofNonResources
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i]
      if (rule !== undefined && matches(rule, request, user)) return rule.decision
    }
    return this.#none
  }
}

/** @param resource undefined = one that no rule names */
function canBeAbout({ resources, paths }: CompiledAuditRule, resource: string | undefined): boolean {
  if (resources === undefined) return paths === undefined
  return resources.some((one) => one.others || (resource !== undefined && one.named.includes(resource)))
}

function matches(rule: CompiledAuditRule, request: AuditedRequest, user: AuditedUser): boolean {
  if (rule.users !== undefined && !rule.users.has(user.name)) return false
  if (rule.userGroups !== undefined && !hasAny(rule.userGroups, user.groups)) return false
  if (rule.verbs !== undefined && !rule.verbs.has(request.verb)) return false
  if (rule.namespaces !== undefined || rule.resources !== undefined) {
    if (!request.isResourceRequest) return false
    if (rule.namespaces !== undefined && !rule.namespaces.has(request.namespace)) return false
    return rule.resources === undefined || matchesResources(rule.resources, request)
  }
  if (rule.paths === undefined) return true
  return !request.isResourceRequest && matchesPath(rule.paths, request.path)
}

function matchesResources(all: readonly CompiledResources[], request: AuditedRequest): boolean {
  const { apiGroup, resource, subresource, name } = request
  for (let i = 0; i < all.length; i++) {
    const one = all[i]
    if (one === undefined || (one.group !== '*' && one.group !== apiGroup)) continue
    if (one.exact === undefined) return true
    if (one.names !== undefined && !one.names.has(name)) continue
    if (one.all || one.withAnySubresource.has(resource)) return true
    if (subresource === '') {
      if (one.exact.has(resource)) return true
    } else if (one.subresources.has(subresource) || one.exact.has(`${resource}/${subresource}`)) return true
  }
  return false
}

function matchesPath({ exact, prefixes }: NonNullable<CompiledAuditRule['paths']>, path: string): boolean {
  if (exact.has(path)) return true
  for (let i = 0; i < prefixes.length; i++) if (path.startsWith(prefixes[i] ?? '')) return true
  return false
}

function hasAny(wanted: ReadonlySet<string>, groups: readonly string[]): boolean {
  for (let i = 0; i < groups.length; i++) if (wanted.has(groups[i] ?? '')) return true
  return false
}

function compileRule(rule: AuditRule, policy: AuditPolicy): CompiledAuditRule {
  const urls = rule.nonResourceURLs
  return {
    users: setOf(rule.users),
    userGroups: setOf(rule.userGroups),
    verbs: setOf(rule.verbs),
    namespaces: setOf(rule.namespaces),
    resources: rule.resources.length === 0 ? undefined : rule.resources.map(compileResources),
    paths:
      urls.length === 0
        ? undefined
        : {
            exact: new Set(urls),
            // All trailing stars, like Go's TrimRight.
            prefixes: urls.filter((url) => url.endsWith('*')).map((url) => url.replace(/\*+$/, '')),
          },
    decision: decisionOf(
      rule.level,
      [...policy.omitStages, ...rule.omitStages],
      rule.omitManagedFields ?? policy.omitManagedFields,
    ),
  }
}

function compileResources({ group, resources, resourceNames }: AuditGroupResources): CompiledResources {
  return {
    group,
    named: resources.map((one) => one.split('/', 1)[0] ?? '').filter((one) => one !== '*'),
    others: resources.length === 0 || resources.some((one) => one === '*' || one.startsWith('*/')),
    exact: setOf(resources),
    all: resources.includes('*'),
    withAnySubresource: new Set(resources.filter((one) => one.endsWith('/*')).map((one) => one.slice(0, -2))),
    subresources: new Set(resources.filter((one) => one.startsWith('*/')).map((one) => one.slice(2))),
    names: setOf(resourceNames),
  }
}

function setOf(texts: readonly string[]): ReadonlySet<string> | undefined {
  return texts.length === 0 ? undefined : new Set(texts)
}

function decisionOf(level: AuditLevel, omitted: readonly AuditStage[], omitManagedFields: boolean): AuditDecision {
  return {
    level,
    received: !omitted.includes('RequestReceived'),
    started: !omitted.includes('ResponseStarted'),
    complete: !omitted.includes('ResponseComplete'),
    panic: !omitted.includes('Panic'),
    omitManagedFields,
  }
}
