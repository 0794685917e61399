// Limits (spec.flowControl): exactly one kind each, the shared limit never below the local one, and shared limits only where replicas can share them.

import type { Loose } from '../../../kit/api/json/object-shape.ts'
import { childPath, type FieldErrors, shown } from '../../../kit/api/validation/field-errors.ts'
import type { FlowControlSchema, TokenBucket } from './upstream-cluster.ts'

const KINDS = ['exempt', 'maxRequestsInflight', 'tokenBucket'] as const
const GLOBAL_OF = { maxRequestsInflight: 'globalMaxRequestsInflight', tokenBucket: 'globalTokenBucket' } as const
const LOCAL_OF = { globalMaxRequestsInflight: 'maxRequestsInflight', globalTokenBucket: 'tokenBucket' } as const
const LIMITS = ['maxRequestsInflight', 'tokenBucket'] as const

type Schema = Loose<FlowControlSchema>

/** @param globalLimits whether the gateway can enforce limits across replicas, that is, whether it has a Redis */
export function checkFlowControlSchemas(
  schemas: readonly (Schema | undefined)[],
  path: string,
  out: FieldErrors,
  globalLimits = true,
): void {
  const names = new Set<string>()
  for (const [index, schema] of schemas.entries()) {
    if (schema === undefined) continue
    const at = `${path}[${index}]`
    const { name = '' } = schema
    if (name !== '' && names.has(name)) {
      out.duplicate(
        `${at}.name`,
        `${shown(name)} is already the name of another schema`,
        'give each schema its own name',
      )
    }
    names.add(name)
    checkKind(schema, at, out)
    checkBucket(schema.tokenBucket, `${at}.tokenBucket`, out)
    checkBucket(schema.globalTokenBucket, `${at}.globalTokenBucket`, out)
    checkGlobal(schema, at, out)
    checkCost(schema, at, out)
    if (isShared(schema)) checkSharing(schema, at, globalLimits, out)
  }
}

function isShared({ strategy }: Schema): boolean {
  return strategy === 'globalAllocate' || strategy === 'globalCount'
}

/** Checks limits across replicas. */
function checkSharing(schema: Schema, path: string, globalLimits: boolean, out: FieldErrors): void {
  const blocks = LIMITS.map((limit) => GLOBAL_OF[limit]).filter((block) => schema[block] !== undefined)
  const [first] = blocks
  if (first === undefined) return
  if (schema.perUser === true) {
    const message = `may not be specified when ${first} is set: limits per user are not shared by replicas`
    out.invalid(`${path}.perUser`, message, 'remove it, or set strategy to local')
  }
  if (globalLimits) return
  for (const block of blocks) {
    const message = `needs Redis, which this gateway does not use: in force is ${LOCAL_OF[block]}, in every replica`
    out.warning(childPath(path, block), message, 'start the gateway with --redis-url, or set strategy to local')
  }
}

function checkKind(schema: Schema, path: string, out: FieldErrors): void {
  const given = KINDS.filter((kind) => schema[kind] !== undefined)
  for (const extra of given.slice(1)) {
    out.forbidden(
      childPath(path, extra),
      `may not be specified when ${given[0]} is set`,
      `keep one of ${KINDS.join(', ')}`,
    )
  }
  if (given.length > 0) return
  const shared = LIMITS.filter((limit) => schema[GLOBAL_OF[limit]] !== undefined)
  for (const limit of shared) {
    const fix = `add ${limit}, the limit of each replica; the same as ${GLOBAL_OF[limit]} if one replica may use all of it`
    out.required(childPath(path, limit), `is required when ${GLOBAL_OF[limit]} is set`, fix)
  }
  if (shared.length > 0) return
  out.invalid(path, 'sets no limit', `add one of ${KINDS.join(', ')} (exempt: {} means unlimited)`)
}

/** A schema without a limit does not count seats. */
function checkCost({ cost, exempt }: Schema, path: string, out: FieldErrors): void {
  if (cost !== true || exempt === undefined) return
  out.warning(
    `${path}.cost`,
    'has no effect where nothing is limited',
    'remove it, or set maxRequestsInflight or tokenBucket',
  )
}

function checkBucket(bucket: Loose<TokenBucket> | undefined, path: string, out: FieldErrors): void {
  const { qps, burst } = bucket ?? {}
  // The schema reports values out of range.
  if (qps === undefined || burst === undefined || qps < 1 || burst < 1 || burst >= qps) return
  out.invalid(`${path}.burst`, `${burst} is below qps, ${qps}`, `write at least ${qps}`)
}

function checkGlobal(schema: Schema, path: string, out: FieldErrors): void {
  const isGlobal = isShared(schema)
  const kinds = KINDS.filter((kind) => schema[kind] !== undefined)
  for (const limit of LIMITS) {
    const block = GLOBAL_OF[limit]
    const at = childPath(path, block)
    if (schema[block] !== undefined && !isGlobal) {
      out.warning(at, 'has no effect without a global strategy', 'set strategy to globalCount, or remove it')
    }
    if (schema[block] !== undefined && kinds.length > 0 && schema[limit] === undefined) {
      out.required(childPath(path, limit), `is required when ${block} is set`, `add ${limit}, or remove ${block}`)
    }
    if (schema[block] === undefined && isGlobal && kinds.length === 1 && schema[limit] !== undefined) {
      const message = `is missing, so strategy ${schema.strategy} has no effect: in force is ${limit}, in every replica`
      out.warning(at, message, `add ${block}, or set strategy to local`)
    }
  }
  const local = { ...schema.tokenBucket, max: schema.maxRequestsInflight?.max }
  const shared = { ...schema.globalTokenBucket, max: schema.globalMaxRequestsInflight?.max }
  notBelow(shared.qps, local.qps, `${path}.globalTokenBucket.qps`, out)
  // A burst below its own qps has already been reported.
  if ((shared.burst ?? 0) >= (shared.qps ?? 0)) {
    notBelow(shared.burst, local.burst, `${path}.globalTokenBucket.burst`, out)
  }
  notBelow(shared.max, local.max, `${path}.globalMaxRequestsInflight.max`, out)
}

function notBelow(shared: number | undefined, local: number | undefined, path: string, out: FieldErrors): void {
  if (shared === undefined || local === undefined || shared < 0 || shared >= local) return
  out.invalid(path, `${shared} is below the local limit, ${local}`, `write at least ${local}`)
}
