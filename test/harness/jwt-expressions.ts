// Expressions of issuers with what a kube-apiserver makes of them (test/data/jwt-expressions.json), as issuers and the tokens that ask for each.

import { readFileSync } from 'node:fs'
import type { JwtAuthenticator } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'

interface Expressions {
  readonly claims: Readonly<Record<string, unknown>>
  /** Texts and lists of texts; none is empty, which would be left out. */
  readonly values: Readonly<Record<string, string | readonly string[]>>
  /** They have no value. */
  readonly faults: readonly string[]
  /** When they are written. */
  readonly refused: readonly string[]
  /** The same, by the gateway alone. */
  readonly alsoRefused: readonly string[]
}

interface ExpressionCase {
  readonly name: string
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  /** null = 401. */
  readonly user: Readonly<Record<string, unknown>> | null
}

const FILE = new URL('../data/jwt-expressions.json', import.meta.url)
export const EXPRESSIONS: Expressions = JSON.parse(readFileSync(FILE, 'utf8'))

/** Keys of an issuer. */
const GROUP = 50

/** Each expression is the value of a key of its own. */
export function expressionIssuer(expressions: readonly string[]): Partial<JwtAuthenticator> {
  const extra = expressions.map((valueExpression, n) => ({ key: `example.com/v${n}`, valueExpression }))
  return { claimMappings: { username: { claim: 'sub', prefix: '' }, extra } }
}

export function expressionIssuers(): Readonly<Record<string, Partial<JwtAuthenticator>>> {
  const values = groups(Object.keys(EXPRESSIONS.values)).map(
    (group, n) => [`values-${n}`, expressionIssuer(group)] as const,
  )
  const faults = groups(EXPRESSIONS.faults).map((group, n) => {
    const asked = group.map((one, at) => `claims.pick == '${at}' && [${one}].size() == 1 ? 'x' : ''`)
    return [`faults-${n}`, expressionIssuer(asked)] as const
  })
  return Object.fromEntries([...values, ...faults])
}

export function expressionCases(): readonly ExpressionCase[] {
  const { claims, values, faults } = EXPRESSIONS
  const valued = groups(Object.values(values)).map((group, n): ExpressionCase => {
    const extra = Object.fromEntries(group.map((value, at) => [`example.com/v${at}`, [value].flat()]))
    return { name: 'all have their values', issuer: `values-${n}`, claims, user: { username: 'alice', extra } }
  })
  const faulty = groups(faults).flatMap((group, n): readonly ExpressionCase[] => {
    const issuer = `faults-${n}`
    const none = { name: 'none is asked for', issuer, claims: { ...claims, pick: '' }, user: { username: 'alice' } }
    return [none, ...group.map((name, at) => ({ name, issuer, claims: { ...claims, pick: String(at) }, user: null }))]
  })
  return [...valued, ...faulty]
}

function groups<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / GROUP) }, (_, n) => all.slice(n * GROUP, (n + 1) * GROUP))
}
