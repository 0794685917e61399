// Settings common to all object planes: this gateway's capabilities, and the kinds with their checks.

import type { ClusterCheckOptions } from '../../gateway/api/upstream-cluster/checks.ts'
import {
  type ResolvedReferences,
  UPSTREAM_CLUSTERS,
  upstreamClusterKind,
} from '../../gateway/api/upstream-cluster-kind.ts'
import { resolveAtWrite, type SecretAtWrite } from '../../gateway/io/secrets/references-at-write.ts'
import type { ObjectsSourceOptions } from '../../gateway/io/sources/objects/objects-source.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import { localServerMessage } from '../../kit/api/validation/local-address.ts'
import { DialRules } from '../../kit/core/dial/dial-rules.ts'
import type { KindRole } from '../../kube/api/kind-role.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import type { Config } from '../../process/config/config.ts'
import { SCHEME } from '../api/scheme.ts'
import { SUBJECTS } from '../subjects/subjects.ts'
import { CLOSED, ownListeners } from '../wiring/own-listeners.ts'

/** What this gateway can do with an object. */
export function checksOf(
  config: Config,
): Required<Pick<ClusterCheckOptions, 'globalLimits' | 'withoutSubject' | 'serverRefusal'>> {
  // Interfaces change: what cannot be decided at a write is decided when a connection is opened.
  const rules = new DialRules(config.allowLocalServers, () => false)
  rules.setOwnListeners(ownListeners(config, CLOSED))
  return {
    globalLimits: config.redisUrl !== '',
    withoutSubject: (field) => !SUBJECTS.some(({ fields }) => fields?.includes(field)),
    serverRefusal: (host, port) => (isLocal(host, port, rules) ? localServerMessage(host) || OWN : ''),
  }
}

const OWN = 'is a listener of the gateway itself'

/** Names other than localhost are looked up when connecting. */
function isLocal(host: string, port: number, rules: DialRules): boolean {
  const address = canonicalIp(host) ?? (localServerMessage(host) === '' ? undefined : '127.0.0.1')
  return address !== undefined && rules.refusal(address, port) !== ''
}

export function sourceOptions(config: Config, log: Logger): Omit<ObjectsSourceOptions, 'client'> {
  return { pem: nodePemChecks, log, checks: checksOf(config), secretNamespaces: config.secretNamespaces }
}

/** @param secretOf resolves the object's references at a write */
export function kindsOf(
  config: Config,
  secretOf: (namespace: string, name: string) => SecretAtWrite,
): readonly ResourceKind[] {
  const resolve = (object: JsonObject): ResolvedReferences => resolveAtWrite(object, secretOf, config.secretNamespaces)
  const clusters = upstreamClusterKind({ ...checksOf(config), resolve })
  return SCHEME.map((kind) => (kind === UPSTREAM_CLUSTERS ? clusters : kind))
}

/** Roles of subjects, with those who have them. */
export function kindRoles(config: Config): readonly { readonly role: KindRole; readonly given: readonly string[] }[] {
  return SUBJECTS.flatMap(({ roles }) => roles ?? []).map(({ role, given }) => ({ role, given: given(config) }))
}
