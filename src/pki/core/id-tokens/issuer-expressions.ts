// The expressions of an issuer, parsed once, and what they say about the claims and the user of a token. All of them together may cost as much as one.

import { evaluate } from '../../../kit/api/expressions/evaluate.ts'
import { type Expression, isInvalidExpression, parseExpression } from '../../../kit/api/expressions/expression.ts'
import { Cost, ExpressionFault } from '../../../kit/api/expressions/values.ts'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { IssuerExpressions, ValidationRule } from './issuer-rules.ts'

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
export class TokenExpressions {
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
