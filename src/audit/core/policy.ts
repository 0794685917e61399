// Parses an audit policy (audit.k8s.io/v1 Policy) like kube-apiserver (apiserver/pkg/audit/policy/reader.go,
// apiserver/pkg/apis/audit/validation): errors with path and fix, and the policy as plain data.

import { isRecord } from '../../kit/api/json/object-shape.ts'
import { type FieldErrors, shown } from '../../kit/api/validation/field-errors.ts'
import { isObjectName } from '../../kit/api/validation/name-syntax.ts'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import { AUDIT_LEVELS, AUDIT_STAGES, type AuditLevel, type AuditStage } from '../../kube/api/audit.ts'

export interface AuditGroupResources {
  /** '' = the core group, '*' = any. */
  readonly group: string
  // `pods`, `pods/log`, `pods/*`, `*/scale`, `*`; [] = all of the group.
  readonly resources: readonly string[]
  readonly resourceNames: readonly string[]
}

/** In each list, [] = any. */
export interface AuditRule {
  readonly level: AuditLevel
  readonly users: readonly string[]
  readonly userGroups: readonly string[]
  readonly verbs: readonly string[]
  readonly resources: readonly AuditGroupResources[]
  /** '' = cluster-scoped. */
  readonly namespaces: readonly string[]
  readonly nonResourceURLs: readonly string[]
  readonly omitStages: readonly AuditStage[]
  /** undefined = inherited from the policy. */
  readonly omitManagedFields: boolean | undefined
}

export interface AuditPolicy {
  readonly rules: readonly AuditRule[]
  readonly omitStages: readonly AuditStage[]
  readonly omitManagedFields: boolean
}

const API_VERSION = 'audit.k8s.io/v1'
const POLICY_FIELDS = ['apiVersion', 'kind', 'metadata', 'rules', 'omitStages', 'omitManagedFields']
const RULE_FIELDS = [
  'level',
  'users',
  'userGroups',
  'verbs',
  'resources',
  'namespaces',
  'nonResourceURLs',
  'omitStages',
  'omitManagedFields',
]
const RESOURCE_FIELDS = ['group', 'resources', 'resourceNames']

type Fields = Readonly<Record<string, unknown>>

/** @returns undefined if `out` has errors; unknown fields are warnings, as in kube-apiserver */
export function readAuditPolicy(document: unknown, out: FieldErrors): AuditPolicy | undefined {
  if (!isRecord(document)) {
    out.invalid('', 'is not a map', `write apiVersion: ${API_VERSION}, kind: Policy and rules`)
    return undefined
  }
  if (document['apiVersion'] !== API_VERSION)
    out.invalid('apiVersion', `is ${shown(document['apiVersion'])}`, `write ${API_VERSION}`)
  if (document['kind'] !== 'Policy') out.invalid('kind', `is ${shown(document['kind'])}`, 'write Policy')
  warnOfUnknown(document, POLICY_FIELDS, '', out)
  const rules = listOf(document['rules'], 'rules', out)
  if (rules.length === 0) {
    out.required(
      'rules',
      'has no rule, so nothing would be recorded',
      'write at least one, for example level: Metadata',
    )
  }
  const policy: AuditPolicy = {
    rules: rules.map((rule, i) => readRule(rule, `rules[${i}]`, out)),
    omitStages: stagesOf(document['omitStages'], 'omitStages', out),
    omitManagedFields: booleanOf(document['omitManagedFields'], 'omitManagedFields', out) ?? false,
  }
  return out.found.some(({ severity }) => severity === 'error') ? undefined : policy
}

function readRule(value: unknown, path: string, out: FieldErrors): AuditRule {
  const fields: Fields = isRecord(value) ? value : {}
  if (!isRecord(value)) out.invalid(path, 'is not a map', 'write a rule, for example { level: Metadata }')
  warnOfUnknown(fields, RULE_FIELDS, path, out)
  const rule: AuditRule = {
    level: levelOf(fields['level'], `${path}.level`, out),
    users: textsOf(fields['users'], `${path}.users`, out),
    userGroups: textsOf(fields['userGroups'], `${path}.userGroups`, out),
    verbs: textsOf(fields['verbs'], `${path}.verbs`, out),
    resources: listOf(fields['resources'], `${path}.resources`, out).map((one, i) =>
      readResources(one, `${path}.resources[${i}]`, out),
    ),
    namespaces: textsOf(fields['namespaces'], `${path}.namespaces`, out),
    nonResourceURLs: textsOf(fields['nonResourceURLs'], `${path}.nonResourceURLs`, out),
    omitStages: stagesOf(fields['omitStages'], `${path}.omitStages`, out),
    omitManagedFields: booleanOf(fields['omitManagedFields'], `${path}.omitManagedFields`, out),
  }
  checkUrls(rule, path, out)
  return rule
}

function checkUrls({ nonResourceURLs, resources, namespaces }: AuditRule, path: string, out: FieldErrors): void {
  for (const [i, url] of nonResourceURLs.entries()) {
    if (url === '*') continue
    const at = `${path}.nonResourceURLs[${i}]`
    if (!url.startsWith('/')) out.invalid(at, `is ${shown(url)}, which does not begin with /`, `write /${url}`)
    if (url.slice(0, -1).includes('*'))
      out.invalid(at, `is ${shown(url)}, with * before its end`, 'write * as the last character only')
  }
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)) {
    const fix = 'make two rules of it'
    out.invalid(
      `${path}.nonResourceURLs`,
      'may not be specified with resources or namespaces: no request is for both',
      fix,
    )
  }
}

function readResources(value: unknown, path: string, out: FieldErrors): AuditGroupResources {
  const fields: Fields = isRecord(value) ? value : {}
  if (!isRecord(value)) out.invalid(path, 'is not a map', 'write { group: "", resources: [pods] }')
  warnOfUnknown(fields, RESOURCE_FIELDS, path, out)
  const { group = '' } = fields
  const read = {
    group: typeof group === 'string' ? group : '',
    resources: textsOf(fields['resources'], `${path}.resources`, out),
    resourceNames: textsOf(fields['resourceNames'], `${path}.resourceNames`, out),
  }
  if (typeof group !== 'string' && group !== null) out.invalid(`${path}.group`, 'is not a string', 'write a string')
  if (read.group !== '' && read.group !== '*' && !isObjectName(read.group)) {
    const fix =
      'write the group without a version, for example rbac.authorization.k8s.io, "" for the core group, or "*"'
    out.invalid(`${path}.group`, `is ${shown(read.group)}, which is not the name of a group`, fix)
  }
  if (read.resourceNames.length > 0 && read.resources.length === 0)
    out.invalid(`${path}.resourceNames`, 'is given without resources', 'write the resources that have these names')
  return read
}

function levelOf(value: unknown, path: string, out: FieldErrors): AuditLevel {
  const found = AUDIT_LEVELS.find((level) => level === value)
  const fix = `write one of ${AUDIT_LEVELS.join(', ')}`
  if (found === undefined && (value === undefined || value === null || value === ''))
    out.required(path, 'is required', fix)
  else if (found === undefined) out.invalid(path, `is ${shown(value)}`, fix)
  return found ?? 'None'
}

function stagesOf(value: unknown, path: string, out: FieldErrors): readonly AuditStage[] {
  const stages: AuditStage[] = []
  for (const [i, text] of textsOf(value, path, out).entries()) {
    const stage = AUDIT_STAGES.find((known) => known === text)
    if (stage === undefined)
      out.invalid(`${path}[${i}]`, `is ${shown(text)}`, `write one of ${AUDIT_STAGES.join(', ')}`)
    else stages.push(stage)
  }
  return stages
}

function textsOf(value: unknown, path: string, out: FieldErrors): readonly string[] {
  const texts: string[] = []
  for (const [i, item] of listOf(value, path, out).entries()) {
    if (typeof item === 'string') texts.push(item)
    else
      out.invalid(`${path}[${i}]`, `is ${shown(item)}, which is not a string`, 'write a string, in quotes if need be')
  }
  return texts
}

function listOf(value: unknown, path: string, out: FieldErrors): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  out.invalid(path, `is ${shown(value)}, which is not a list`, 'write a list')
  return []
}

function booleanOf(value: unknown, path: string, out: FieldErrors): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (value !== undefined && value !== null) out.invalid(path, `is ${shown(value)}`, 'write true or false')
  return undefined
}

function warnOfUnknown(fields: Fields, known: readonly string[], path: string, out: FieldErrors): void {
  for (const name of Object.keys(fields)) {
    if (known.includes(name)) continue
    const near = nearestName(name, known)
    const fix = near === '' ? `remove it; known are ${known.join(', ')}` : `write ${near}`
    out.warning(path === '' ? name : `${path}.${name}`, 'is not known and has no effect', fix)
  }
}
