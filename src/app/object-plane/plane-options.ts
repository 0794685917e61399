// What all object planes know of the settings: what this gateway can do with an object, and the kinds with their checks.

import { SCHEME, UPSTREAM_CLUSTERS } from '../../api/kinds/scheme.ts'
import { type ResolvedReferences, upstreamClusterKind } from '../../api/kinds/upstream-cluster-kind.ts'
import type { JsonObject } from '../../api/kube/json-object.ts'
import type { Logger } from '../../api/ports/ports.ts'
import type { ResourceKind } from '../../api/ports/resource-kind.ts'
import { nodePemChecks } from '../../io/pki/pem-checks.ts'
import { resolveAtWrite, type SecretAtWrite } from '../../io/secrets/references-at-write.ts'
import type { ObjectsSourceOptions } from '../../io/sources/objects/objects-source.ts'
import type { Config } from '../config/config.ts'

/** What this gateway can do with an object. */
export function checksOf({ redisUrl }: Config): { readonly globalLimits: boolean } {
  return { globalLimits: redisUrl !== '' }
}

export function sourceOptions(config: Config, log: Logger): Omit<ObjectsSourceOptions, 'client'> {
  return { pem: nodePemChecks, log, checks: checksOf(config), secretNamespaces: config.secretNamespaces }
}

/** @param secretOf resolves the references of an object at a write */
export function kindsOf(
  config: Config,
  secretOf: (namespace: string, name: string) => SecretAtWrite,
): readonly ResourceKind[] {
  const resolve = (object: JsonObject): ResolvedReferences => resolveAtWrite(object, secretOf, config.secretNamespaces)
  const clusters = upstreamClusterKind({ ...checksOf(config), resolve })
  return SCHEME.map((kind) => (kind === UPSTREAM_CLUSTERS ? clusters : kind))
}
