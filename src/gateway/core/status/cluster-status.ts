// Derives the status of an UpstreamCluster: Kubernetes conditions (metav1.Condition, apimachinery/pkg/apis/meta/v1/types.go), from a
// gateway's observations. No condition claims more than was examined: until then its `observedGeneration` lags behind, which `kubectl wait`
// respects.

import type { SourceError } from '../../api/resource-source.ts'
import type { AutoscalerReport } from '../../api/upstream-cluster/cluster-autoscaler.ts'
import type { Condition, GatewayStatus, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { certainSkewMs, skewText, TOLD_SKEW_MS } from '../clocks/cell-clock.ts'
import { effectiveMode } from '../policy/degrade.ts'
import { autoDegradeVerdict } from './auto-degrade-verdict.ts'
import { autoscalerVerdict } from './autoscaler-health.ts'
import { mergedCache, readCacheVerdict } from './cached-resources.ts'
import { transition } from './conditions.ts'
import { answersReads, isAnswered, type MembersFact, memberMessages, membersVerdict } from './members.ts'
import { joinedMessages, problemMessage, REDIS_AWAY } from './messages.ts'
import type {
  AutoscalerFact,
  CredentialFault,
  EndpointState,
  IssuerFact,
  LimitsFact,
  MeasuredClocks,
  ProtectionFact,
  ServerFact,
  StatusFacts,
} from './status-facts.ts'

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'> & { readonly observedGeneration: number }

/** Paths of credentials, including references. */
const CREDENTIAL = /^spec\.(clientConfig\.(key|cert|ca|bearerToken)|secureServing\.(key|cert|clientCA))(Data|Ref|$)/

/**
 * Conditions, endpoints and observedGeneration; `gateways` is copied from `before`.
 * @param before the previous status: a condition keeps its lastTransitionTime as long as its status stays
 * @param nowMs milliseconds since the epoch
 */
export function clusterStatus(
  facts: StatusFacts,
  before: UpstreamClusterStatus | undefined,
  nowMs: number,
): UpstreamClusterStatus {
  const examined = isExamined(facts)
  const conditions = before?.conditions ?? []
  const condition = (type: string, verdict: Verdict): Condition => transition(conditions, { type, ...verdict }, nowMs)
  const enabled = facts.endpoints.filter(({ disabled }) => !disabled)
  const observed = examined ? facts.generation : before?.observedGeneration
  const { autoscaler: reported, cache: kept, ...others } = before ?? {}
  const autoscaler = autoscalerReport(facts, reported)
  const cache =
    facts.inForce === 0
      ? kept
      : facts.cache === undefined
        ? undefined
        : mergedCache(facts.cache, before?.gateways ?? [])
  return {
    ...others,
    ...(observed !== undefined && { observedGeneration: observed }),
    conditions: [
      condition('Ready', readiness(facts, before, enabled)),
      ...(facts.members === undefined
        ? [condition('EndpointsHealthy', endpointsHealth(facts, enabled))]
        : [condition('MembersReady', { ...membersVerdict(facts.members), observedGeneration: facts.inForce })]),
      condition('CredentialsValid', credentialsValidity(facts, before)),
      condition('ClientCertificatesAccepted', clientCertificates(facts)),
      condition('Degraded', degradation(facts, nowMs)),
      ...(facts.clocks === undefined ? [] : [condition('ClocksAgree', agreement(facts.clocks, facts.inForce))]),
      ...(facts.servers === undefined
        ? []
        : [condition('ServersResolved', serverResolution(facts.servers, facts.inForce))]),
      ...(facts.issuers === undefined
        ? []
        : [condition('IssuersReachable', issuersReachable(facts.issuers, facts.inForce))]),
      ...(facts.limits === undefined
        ? []
        : [condition('LimitsShared', limitsSharing(facts, facts.limits, before?.gateways ?? []))]),
      ...(facts.protection === undefined
        ? []
        : [condition('PodsProtected', podProtection(facts, facts.protection, before?.gateways ?? []))]),
      ...(facts.degrade?.auto === undefined
        ? []
        : [
            condition('AutoDegraded', {
              ...autoDegradeVerdict(before?.degrade?.auto),
              observedGeneration: facts.inForce,
            }),
          ]),
      ...(facts.cache === undefined
        ? []
        : [
            condition('ReadCacheReady', {
              ...readCacheVerdict(facts.cache, before?.gateways ?? []),
              observedGeneration: facts.inForce,
            }),
          ]),
      ...(facts.autoscaler === undefined
        ? []
        : [condition('AutoscalerHealthy', autoscalerHealth(facts, facts.autoscaler, before))]),
      ...(before?.conditions ?? []).filter(({ type }) => !OWN_TYPES.has(type)),
    ],
    endpoints: {
      ...before?.endpoints,
      ready: facts.endpoints.filter(({ available }) => available).length,
      total: facts.endpoints.length,
    },
    ...(autoscaler !== undefined && { autoscaler }),
    ...(cache !== undefined && { cache }),
  }
}

/** A gateway that has just started to watch keeps the previous report. */
function autoscalerReport(
  { autoscaler, inForce }: StatusFacts,
  before: AutoscalerReport | undefined,
): AutoscalerReport | undefined {
  if (autoscaler === undefined) return inForce === 0 ? before : undefined
  return autoscaler.report ?? (autoscaler.seen === 'missing' ? undefined : before)
}

/** Whether the names of servers can be resolved, and to which addresses. */
function serverResolution(servers: readonly ServerFact[], observedGeneration: number): Verdict {
  const message = joinedMessages(servers.map(serverMessage))
  const failed = servers.some((server) => server.message !== '')
  if (failed) return { status: 'False', reason: 'LookUpFailed', message, observedGeneration }
  const waiting = servers.some(({ addresses }) => addresses.length === 0)
  if (waiting) return { status: 'Unknown', reason: 'Pending', message, observedGeneration }
  return { status: 'True', reason: 'Resolved', message, observedGeneration }
}

function serverMessage({ server, addresses, omitted, message }: ServerFact): string {
  const more = omitted === 0 ? '' : ` and ${omitted} more, which are left out`
  const known = addresses.length === 0 ? 'no address is known yet' : `${addresses.join(', ')}${more}`
  if (message === '') return `${server}: ${known}`
  const inUse = addresses.length === 0 ? 'the server as written' : known
  return `${server} cannot be looked up (${message}); in use: ${inUse}`
}

/** Whether the keys of the issuers of tokens can be read. */
function issuersReachable(issuers: readonly IssuerFact[], observedGeneration: number): Verdict {
  const message = joinedMessages(issuers.map(issuerMessage))
  if (issuers.some((issuer) => issuer.message !== '')) {
    return { status: 'False', reason: 'KeysNotRead', message, observedGeneration }
  }
  if (issuers.some(({ asked }) => !asked)) return { status: 'Unknown', reason: 'Pending', message, observedGeneration }
  return { status: 'True', reason: 'KeysRead', message, observedGeneration }
}

function issuerMessage({ issuer, keys, asked, message }: IssuerFact): string {
  const known = keys === 1 ? '1 key' : `${keys} keys`
  if (message === '') return `${issuer}: ${asked ? known : 'its keys are being read'}`
  const inUse = keys === 0 ? 'its tokens are not accepted' : `the ${known} read last stay in use for a day`
  return `the keys of ${issuer} cannot be read (${message}); ${inUse}`
}

function autoscalerHealth(
  { inForce }: StatusFacts,
  fact: AutoscalerFact,
  before: UpstreamClusterStatus | undefined,
): Verdict {
  const known = conditionOf(before, 'AutoscalerHealthy')
  if (fact.seen === 'pending' && known !== undefined) return { ...verdictOf(known), observedGeneration: inForce }
  return { ...autoscalerVerdict(fact), observedGeneration: inForce }
}

const OWN_TYPES: ReadonlySet<string> = new Set([
  'Ready',
  'EndpointsHealthy',
  'CredentialsValid',
  'ClientCertificatesAccepted',
  'Degraded',
  'ClocksAgree',
  'ServersResolved',
  'IssuersReachable',
  'LimitsShared',
  'PodsProtected',
  'AutoDegraded',
  'AutoscalerHealthy',
  'ReadCacheReady',
  'MembersReady',
])

export function conditionOf(status: UpstreamClusterStatus | undefined, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

/** Either in force or known to be invalid. */
function isExamined(facts: StatusFacts): boolean {
  return facts.inForce >= facts.generation || errorsOf(facts).length > 0
}

function errorsOf({ problems }: StatusFacts): readonly SourceError[] {
  return problems.filter(({ severity }) => severity === 'error')
}

/** Whether the current generation of the object serves requests. */
function readiness(
  facts: StatusFacts,
  before: UpstreamClusterStatus | undefined,
  enabled: readonly EndpointState[],
): Verdict {
  const { generation, inForce } = facts
  const errors = errorsOf(facts)
  if (errors.length > 0) {
    const stays =
      inForce === 0 ? 'no version of it is in force' : `the last good version${generationText(facts)} stays in force`
    const message = joinedMessages([...errors.map(problemMessage), stays])
    return { status: 'False', reason: 'Invalid', message, observedGeneration: generation }
  }
  if (inForce < generation) {
    const known = conditionOf(before, 'Ready')
    // The condition describes an older generation, and says so.
    if (known !== undefined && known.reason !== 'Pending') return verdictOf(known)
    return pending(generation, `generation ${generation} is not in force yet`)
  }
  const { rights, credentials } = facts
  const warnings = facts.problems.map(problemMessage)
  if (facts.members !== undefined) return membersReadiness(facts, facts.members, warnings)
  const ready = enabled.filter(({ available }) => available).length
  const fatal = credentials.filter(({ partial }) => partial !== true)
  if (ready > 0 && fatal.length > 0) {
    // Endpoints that pass their health check may still refuse every request, or clients may be unable to connect at all.
    const message = joinedMessages(fatal.map(faultMessage))
    return { status: 'False', reason: 'CredentialsInvalid', message, observedGeneration: generation }
  }
  if (ready > 0 && rights.kind === 'unanswered') {
    const message = `it is unknown whether the gateway may send requests: ${rights.message}`
    return { status: 'Unknown', reason: 'RightsUnknown', message, observedGeneration: generation }
  }
  if (ready > 0 && rights.kind === 'unasked') {
    const known = conditionOf(before, 'Ready')
    return known?.reason === 'Serving' && known.observedGeneration === generation
      ? verdictOf(known)
      : pending(generation, RIGHTS_UNASKED)
  }
  if (ready > 0) {
    const message = joinedMessages([
      `generation ${inForce} is in force, ${ready} of ${enabled.length} endpoints take requests`,
      ...(facts.shadows.length === 0 ? [] : [`in shadow mode, refusing nothing: ${facts.shadows.join(', ')}`]),
      ...warnings,
    ])
    return { status: 'True', reason: 'Serving', message, observedGeneration: generation }
  }
  if (enabled.some(({ state }) => state === 'unknown')) return pending(generation, 'no endpoint has been checked yet')
  const message = joinedMessages([...whyNoEndpoint(facts, enabled), ...warnings])
  return { status: 'False', reason: 'NoHealthyEndpoint', message, observedGeneration: generation }
}

/** For a cluster that has members in place of endpoints. */
function membersReadiness(
  { credentials, generation }: StatusFacts,
  members: MembersFact,
  warnings: readonly string[],
): Verdict {
  const say = (status: Verdict['status'], reason: string, ...messages: readonly string[]): Verdict => {
    return { status, reason, message: joinedMessages([...messages, ...warnings]), observedGeneration: generation }
  }
  const fatal = credentials.filter(({ partial }) => partial !== true)
  if (fatal.length > 0) return say('False', 'CredentialsInvalid', ...fatal.map(faultMessage))
  const unread = members.members.filter((member) => !isAnswered(member))
  if (!answersReads(members)) {
    if (unread.every(({ loading }) => loading)) return say('Unknown', 'Pending', memberMessages(unread))
    return say('False', 'MembersNotReady', memberMessages(unread))
  }
  const answered = members.members.length - unread.length
  const inForce = `generation ${generation} is in force, objects of ${answered} of ${members.members.length} members are answered`
  return say('True', 'Serving', inForce)
}

/** The credential first: it makes the health checks fail, too. */
function whyNoEndpoint({ credentials }: StatusFacts, enabled: readonly EndpointState[]): readonly string[] {
  if (enabled.length === 0) return ['all endpoints are disabled']
  const refused = credentials.filter(
    ({ path, reason }) => path.startsWith('spec.clientConfig') && reason !== 'Forbidden',
  )
  const causes = refused.length > 0 ? refused.map(faultMessage) : endpointCauses(enabled)
  const [first = '', ...others] = causes
  return [`no endpoint takes requests: ${first}`, ...others]
}

function endpointCauses(enabled: readonly EndpointState[]): readonly string[] {
  const bad = enabled.filter(({ available, state }) => !available && state !== 'unknown')
  return bad.map(({ url, message }) => `${url}: ${message === '' ? 'its connections break' : message}`)
}

const RIGHTS_UNASKED = 'the rights of the gateway have not been checked yet'

function faultMessage({ path, message }: CredentialFault): string {
  return `${path}: ${message}`
}

/** Empty if the object itself is unchanged, but one of its Secrets changed. */
function generationText({ inForce, generation }: StatusFacts): string {
  return inForce === generation ? '' : ` (generation ${inForce})`
}

function pending(observedGeneration: number, message: string): Verdict {
  return { status: 'Unknown', reason: 'Pending', message, observedGeneration }
}

function verdictOf({ status, reason, message, observedGeneration }: Condition): Verdict {
  return { status, reason, message, observedGeneration: observedGeneration ?? 0 }
}

/** For the version in force; disabled endpoints do not count. */
function endpointsHealth({ inForce }: StatusFacts, enabled: readonly EndpointState[]): Verdict {
  if (inForce === 0) return pending(0, 'no version is in force')
  const say = (status: 'True' | 'False', reason: string, message: string): Verdict => {
    return { status, reason, message, observedGeneration: inForce }
  }
  if (enabled.length === 0) return say('False', 'AllDisabled', 'all endpoints are disabled')
  const bad = enabled.filter(({ available, state }) => !available && state !== 'unknown')
  if (bad.length > 0) {
    const reason = bad.length === enabled.length ? 'NoneHealthy' : 'SomeUnhealthy'
    return say('False', reason, joinedMessages(endpointCauses(enabled)))
  }
  const unchecked = enabled.filter(({ available }) => !available)
  if (unchecked.length > 0) return pending(inForce, `not checked yet: ${unchecked.map(({ url }) => url).join(', ')}`)
  return say('True', 'AllHealthy', `${enabled.length} of ${enabled.length} endpoints take requests`)
}

/** Errors in the credentials of the object, and whether the credentials in force work. */
function credentialsValidity(facts: StatusFacts, before: UpstreamClusterStatus | undefined): Verdict {
  const { inForce, generation, credentials, rights } = facts
  const errors = errorsOf(facts).filter(({ path }) => CREDENTIAL.test(path))
  if (errors.length > 0) {
    const message = joinedMessages(errors.map(problemMessage))
    return { status: 'False', reason: 'Invalid', message, observedGeneration: generation }
  }
  if (inForce === 0) return pending(0, 'no version is in force')
  const warnings = facts.problems.filter(({ path }) => CREDENTIAL.test(path)).map(problemMessage)
  const [first] = credentials
  if (first !== undefined) {
    const message = joinedMessages([...credentials.map(faultMessage), ...warnings])
    return { status: 'False', reason: first.reason, message, observedGeneration: inForce }
  }
  if (facts.members !== undefined) {
    const message = joinedMessages([
      'there are no servers; each member has a credential of its own',
      ...facts.endingSoon,
      ...warnings,
    ])
    return {
      status: 'True',
      reason: facts.endingSoon.length > 0 ? 'EndsSoon' : 'Valid',
      message,
      observedGeneration: inForce,
    }
  }
  if (rights.kind === 'unanswered') {
    return { status: 'Unknown', reason: 'Unreachable', message: rights.message, observedGeneration: inForce }
  }
  if (rights.kind === 'unasked') {
    // Checked by a previous leader.
    const known = conditionOf(before, 'CredentialsValid')
    const counts = known?.status === 'True' && known.observedGeneration === inForce
    return counts ? verdictOf(known) : pending(inForce, RIGHTS_UNASKED)
  }
  if (facts.endingSoon.length > 0) {
    const message = joinedMessages([...facts.endingSoon, ...warnings])
    return { status: 'True', reason: 'EndsSoon', message, observedGeneration: inForce }
  }
  return {
    status: 'True',
    reason: 'Valid',
    message: joinedMessages([
      'the cluster accepts the credential and grants every right that the gateway needs',
      ...warnings,
    ]),
    observedGeneration: inForce,
  }
}

const CLIENT_CA = 'spec.secureServing.clientCA'
const NO_CLIENT_CA =
  'neither clientCAData nor clientCARef is set in spec.secureServing, so every client certificate gets 401 (tokens are not affected). Name the CA of ' +
  "the cluster's client certificates there: in the cluster, kubectl get configmap -n kube-system extension-apiserver-authentication -o yaml shows it " +
  'as client-ca-file'

/** A cluster without a CA is complete if its users have tokens; but users with certificates need to know why they get 401. */
function clientCertificates({ inForce, hasClientCA, credentials }: StatusFacts): Verdict {
  if (inForce === 0 || hasClientCA === undefined) return pending(inForce, 'no version is in force')
  const say = (status: 'True' | 'False', reason: string, message: string): Verdict => {
    return { status, reason, message, observedGeneration: inForce }
  }
  if (!hasClientCA) return say('False', 'NoClientCA', NO_CLIENT_CA)
  const expired = credentials.find(({ path }) => path.startsWith(CLIENT_CA))
  if (expired !== undefined) return say('False', 'Expired', faultMessage(expired))
  return say('True', 'Verified', 'client certificates are verified with the CAs of spec.secureServing')
}

const NOT_MEASURED =
  'no API server has reported its time: no health check was answered, or only by proxies (fields Via, Server or Age, or no Audit-Id)'

/** Only for a protected cluster. Pod protection tolerates a skew, but other things that depend on that clock may not. */
function agreement({ skew, toleratedMs }: MeasuredClocks, observedGeneration: number): Verdict {
  if (skew === undefined) {
    return { status: 'Unknown', reason: 'NotMeasured', message: NOT_MEASURED, observedGeneration }
  }
  const skewMs = certainSkewMs(skew)
  if (Math.abs(skewMs) < Math.max(TOLD_SKEW_MS, toleratedMs)) {
    return { status: 'True', reason: 'WithinTolerance', message: 'clocks agree', observedGeneration }
  }
  const message = `${skewText(skewMs)}; deletions of pods are evaluated with the measured difference: run NTP on both`
  return { status: 'False', reason: 'ClockSkew', message, observedGeneration }
}

/** The effective degrade mode, not the configured one. */
function degradation({ degrade, inForce }: StatusFacts, nowMs: number): Verdict {
  const say = (status: 'True' | 'False', reason: string, message: string): Verdict => {
    return { status, reason, message, observedGeneration: inForce }
  }
  if (degrade === undefined) return pending(0, 'no version is in force')
  if (degrade.mode === 'Off') return say('False', 'Off', 'nothing is refused')
  const why = degrade.reason === '' ? 'no reason given' : degrade.reason
  if (effectiveMode(degrade, nowMs) === 'Off') {
    return say('False', 'Expired', `${degrade.mode} ended at ${degrade.expiresAt}: ${why}`)
  }
  const until = degrade.expiresAtMs === 0 ? 'without an expiry' : `until ${degrade.expiresAt}`
  if (degrade.shadow) return say('False', 'Shadow', `${degrade.mode} ${until} only counts and warns: ${why}`)
  const back = degrade.recovery === undefined ? '' : ', on the way back to Off by steps'
  return say('True', degrade.mode, `${degrade.mode} ${until}${back}: ${why}`)
}

/** False as soon as one replica has lost Redis, because the total is then no longer exact. */
function limitsSharing({ inForce }: StatusFacts, limits: LimitsFact, gateways: readonly GatewayStatus[]): Verdict {
  const say = (status: 'True' | 'False', reason: string, message: string): Verdict => {
    return { status, reason, message, observedGeneration: inForce }
  }
  if (!limits.redis) return say('False', 'NoRedis', 'without --redis-url each replica enforces the limits on its own')
  const away = gateways.filter(({ message = '' }) => message.startsWith(REDIS_AWAY))
  const texts = away.map(({ name, message = '' }) => `${name}: ${message}`)
  if (texts.length > 0) return say('False', 'RedisAway', joinedMessages(texts))
  if (limits.message !== '') return say('False', 'RedisAway', limits.message)
  return say('True', 'Shared', 'all replicas enforce the limits together')
}

/** From the entries of all replicas: the one that counts the pods need not be the one that writes the status. */
function podProtection(
  { inForce }: StatusFacts,
  { cell, shadow, counted, missingRights }: ProtectionFact,
  gateways: readonly GatewayStatus[],
): Verdict {
  const say = (status: 'True' | 'False', reason: string, message: string): Verdict => {
    return { status, reason, message, observedGeneration: inForce }
  }
  if (missingRights !== '') return say('False', 'Forbidden', missingRights)
  const replicas = gateways.filter(({ podProtection }) => podProtection?.cell === cell)
  const broken = replicas.filter(({ podProtection }) => podProtection?.state === 'Broken')
  if (broken.length > 0) {
    const texts = broken.map(({ name, podProtection }) => {
      return `${name}, since ${podProtection?.since}: ${podProtection?.message ?? ''}`
    })
    return say('False', 'Broken', joinedMessages(texts))
  }
  const idle = replicas.filter(({ podProtection }) => (podProtection?.message ?? '') !== '')
  if (idle.length > 0) {
    const texts = idle.map(({ name, podProtection }) => `${name}: ${podProtection?.message}`)
    return say('False', 'NotGenerated', joinedMessages(texts))
  }
  const working = replicas.some(({ podProtection }) => podProtection?.state === (counted ? 'Counting' : 'Judging'))
  if (!working)
    return pending(inForce, `no replica ${counted ? 'counts the pods of' : 'evaluates deletions for'} cell ${cell} yet`)
  if (shadow) return say('False', 'Shadow', 'deletions are evaluated and counted, nothing is refused')
  if (counted) return say('True', 'Protecting', `deletions are evaluated, the pods of cell ${cell} are counted`)
  return say('True', 'CountedElsewhere', `deletions are evaluated; the pods of cell ${cell} are counted elsewhere`)
}
