// Conflicts of one UpstreamCluster with all others, as its row of the scheme gives them: for a write that is to be refused.

import type { FieldError } from '../kube/field-error.ts'
import { type JsonObject, nameOf } from '../kube/json-object.ts'
import { isRecord } from '../kube/object-shape.ts'
import { FieldErrors, reportable } from '../validation/field-errors.ts'
import { type Claim, claimsOf } from './cluster-conflicts.ts'
import type { UpstreamCluster } from './upstream-cluster.ts'

/** Objects never change, and the same ones are asked about with every write. */
const known = new WeakMap<JsonObject, readonly Claim[]>()

/** Every claim of `object` that another cluster has too. What is malformed, in any of them, claims nothing. */
export function conflictsWith(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[] {
  const out = new FieldErrors()
  const wanted = new Map(claimsOfObject(object).map((claim) => [claim.key, claim]))
  const reported = new Set<string>()
  for (const other of others) {
    for (const { key, path } of claimsOfObject(other)) {
      const claim = wanted.get(key)
      if (claim === undefined || reported.has(key)) continue
      reported.add(key)
      const holder = JSON.stringify(nameOf(other))
      const message = `${claim.what} belongs to UpstreamCluster ${holder} (its ${path})`
      out.invalid(claim.path, message, 'choose another, or take it from that cluster first')
    }
  }
  return reportable(out.found, out.more)
}

/** The keys of everything that it claims. */
export function claimKeysOf(object: JsonObject): readonly string[] {
  return claimsOfObject(object).map(({ key }) => key)
}

function claimsOfObject(object: JsonObject): readonly Claim[] {
  const before = known.get(object)
  if (before !== undefined) return before
  const claims = claimsOf(claimingParts(object))
  known.set(object, claims)
  return claims
}

/** What claims are made of, as far as its types are right. Entries keep their places. */
function claimingParts(object: JsonObject): UpstreamCluster {
  const spec = recordAt(object, 'spec')
  const addresses = recordAt(spec, 'addresses')
  return {
    apiVersion: '',
    kind: '',
    metadata: { name: nameOf(object) },
    spec: {
      servers: [],
      dispatchPolicies: [],
      secureServing: { serverNames: listAt(recordAt(spec, 'secureServing'), 'serverNames').map(asText) },
      addresses: { ips: listAt(addresses, 'ips').map(asText), ports: listAt(addresses, 'ports').filter(isNumber) },
      default: spec['default'] === true,
    },
  }
}

function recordAt(object: JsonObject, key: string): JsonObject {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return isRecord(value) ? value : {}
}

function listAt(object: JsonObject, key: string): readonly unknown[] {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return Array.isArray(value) ? value : []
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
