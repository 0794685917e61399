// Evaluates expressions (https://github.com/google/cel-spec, and kube-apiserver's extensions for texts and optional values). Each step has a cost; an
// expression that costs too much has no value.

import type { ASTNode } from '@marcbachmann/cel-js'
import { callAddress } from './addresses.ts'
import { isLibrary, itemType } from './declarations.ts'
import type { Expression } from './expression.ts'
import { callFunction, callMethod } from './functions.ts'
import { callSets, emptySum } from './lists.ts'
import { callPattern, PATTERN_FUNCTIONS, type Patterns } from './patterns.ts'
import {
  areEqual,
  type Cost,
  calculate,
  checkedInt,
  ExpressionFault,
  isMap,
  isNumber,
  NONE,
  noOverload,
  Optional,
  orderOf,
} from './values.ts'

interface Scope {
  readonly name: string
  readonly value: unknown
  readonly outer: Scope | undefined
}

/** Throwing and catching a fault takes as long as this many steps. */
const FAULT_STEPS = 50

/** @throws {ExpressionFault} if it has no value */
export function evaluate({ subject, root, patterns }: Expression, value: unknown, cost: Cost): unknown {
  return new Evaluation(patterns, cost).of(root, { name: subject, value, outer: undefined })
}

class Evaluation {
  readonly #patterns: Patterns
  readonly #cost: Cost

  constructor(patterns: Patterns, cost: Cost) {
    this.#patterns = patterns
    this.#cost = cost
  }

  of(node: ASTNode, scope: Scope): unknown {
    this.#cost.spend(1)
    switch (node.op) {
      case 'value':
        return node.args
      case 'id':
        return variableIn(node.args, scope)
      case '.':
        return this.#select(this.of(node.args[0], scope), node.args[1], node.args[1])
      case '.?':
        return optionally(this.of(node.args[0], scope), node.args[1])
      case '[]':
        return this.#select(this.of(node.args[0], scope), this.of(node.args[1], scope), literalOf(node.args[1]))
      case '[?]':
        return optionally(this.of(node.args[0], scope), this.of(node.args[1], scope))
      case 'call':
        return this.#call(node.args[0], node.args[1], scope)
      case 'rcall':
        return this.#callMethod(node.args[0], node.args[1], node.args[2], scope)
      case 'list':
        return node.args.map((item) => this.of(item, scope))
      case 'map':
        return Object.fromEntries(node.args.map(([key, item]) => [String(this.of(key, scope)), this.of(item, scope)]))
      case '?:':
        return bool(this.of(node.args[0], scope)) ? this.of(node.args[1], scope) : this.of(node.args[2], scope)
      case '||':
        return this.#either(true, node.args, scope)
      case '&&':
        return this.#either(false, node.args, scope)
      case '!_':
        return !bool(this.of(node.args, scope))
      case '-_': {
        const value = this.of(node.args, scope)
        if (!isNumber(value)) return noOverload('-_', value)
        return typeof value === 'bigint' ? checkedInt(-value) : -value
      }
      default:
        return this.#binary(node.op, this.of(node.args[0], scope), this.of(node.args[1], scope))
    }
  }

  #binary(op: string, a: unknown, b: unknown): unknown {
    const cost = this.#cost
    switch (op) {
      case '==':
        return areEqual(a, b, cost)
      case '!=':
        return !areEqual(a, b, cost)
      case '<':
        return orderOf(a, b, cost) < 0
      case '<=':
        return orderOf(a, b, cost) <= 0
      case '>':
        return orderOf(a, b, cost) > 0
      case '>=':
        return orderOf(a, b, cost) >= 0
      case 'in':
        if (Array.isArray(b)) return b.some((item) => areEqual(a, item, cost))
        return isMap(b) ? typeof a === 'string' && Object.hasOwn(b, a) : noOverload('in', a, b)
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
        return calculate(op, a, b, cost)
      default:
        throw new ExpressionFault(`${op} is not evaluated`)
    }
  }

  /** One deciding side is enough, even if the other has a fault. */
  #either(deciding: boolean, [left, right]: readonly [ASTNode, ASTNode], scope: Scope): boolean {
    const first = this.#attempt(left, scope)
    if (first === deciding) return deciding
    const second = this.#attempt(right, scope)
    if (second === deciding) return deciding
    for (const one of [first, second]) if (one instanceof ExpressionFault) throw one
    return !deciding
  }

  /** Rethrows the fault of too high a cost, which ends the evaluation. */
  #attempt(node: ASTNode, scope: Scope): boolean | ExpressionFault {
    try {
      return bool(this.of(node, scope))
    } catch (error) {
      if (!(error instanceof ExpressionFault)) throw error
      this.#cost.spend(FAULT_STEPS)
      return error
    }
  }

  /**
   * A field of an optional value is optional, too.
   * @param name of the key in messages, which are logged: nothing of a token, which may be secret or long, or not even have a text
   */
  #select(value: unknown, key: unknown, name: string): unknown {
    if (value instanceof Optional) return optionally(value, key)
    const [found] = lookUp(value, key)
    if (found === undefined) throw new ExpressionFault(`no such key${name === '' ? '' : `: ${name}`}`)
    return found
  }

  #call(name: string, args: readonly ASTNode[], scope: Scope): unknown {
    const [first] = args
    if (name !== 'has' || first === undefined) {
      const values = args.map((arg) => this.of(arg, scope))
      if (PATTERN_FUNCTIONS.includes(name)) return callPattern(name, values, this.#patterns, this.#cost)
      return callFunction(name, values, this.#cost)
    }
    if (first.op !== '.' && first.op !== '.?') throw new ExpressionFault('has() needs a field')
    const of = this.of(first.args[0], scope)
    return lookUp(of instanceof Optional ? (of.values[0] ?? {}) : of, first.args[1]).length > 0
  }

  #callMethod(name: string, receiver: ASTNode, args: readonly ASTNode[], scope: Scope): unknown {
    if (receiver.op === 'id' && isLibrary(receiver.args)) return this.#callLibrary(receiver.args, name, args, scope)
    const value = this.of(receiver, scope)
    const [variable, ...steps] = args
    if (variable?.op === 'id' && isMacro(name)) return this.#comprehend(name, value, variable.args, steps, scope)
    if (name === 'orValue' && variable !== undefined) {
      if (!(value instanceof Optional)) return value
      return value.values.length > 0 ? value.values[0] : this.of(variable, scope)
    }
    if (name === 'sum' && Array.isArray(value) && value.length === 0) return emptySum(itemType(receiver))
    const values = args.map((arg) => this.of(arg, scope))
    if (PATTERN_FUNCTIONS.includes(name)) return callPattern(name, [value, ...values], this.#patterns, this.#cost)
    return callMethod(name, value, values, this.#cost)
  }

  #callLibrary(library: string, name: string, args: readonly ASTNode[], scope: Scope): unknown {
    const values = args.map((arg) => this.of(arg, scope))
    if (library === 'ip') return callAddress(`ip.${name}`, values[0], this.#cost)
    if (library === 'sets') return callSets(name, values, this.#cost)
    return name === 'of' ? new Optional([values[0]]) : NONE
  }

  #comprehend(macro: Macro, over: unknown, name: string, steps: readonly ASTNode[], outer: Scope): unknown {
    const items = itemsOf(macro, over, this.#cost)
    const [first, second] = steps
    if (first === undefined) throw new ExpressionFault(`${macro} needs an expression`)
    const scopes = function* (): Generator<Scope> {
      for (const value of items) yield { name, value, outer }
    }
    if (macro === 'all' || macro === 'exists') return this.#quantify(macro === 'exists', first, scopes())
    const found: unknown[] = []
    for (const scope of scopes()) {
      this.#cost.spend(1)
      if (macro === 'map') {
        if (second === undefined || bool(this.of(first, scope))) found.push(this.of(second ?? first, scope))
      } else if (bool(this.of(first, scope))) found.push(scope.value)
    }
    return macro === 'exists_one' ? found.length === 1 : found
  }

  #quantify(deciding: boolean, predicate: ASTNode, scopes: Iterable<Scope>): boolean {
    let fault: ExpressionFault | undefined
    for (const scope of scopes) {
      this.#cost.spend(1)
      const result = this.#attempt(predicate, scope)
      if (result === deciding) return deciding
      if (result instanceof ExpressionFault) fault ??= result
    }
    if (fault !== undefined) throw fault
    return !deciding
  }
}

const MACROS = ['all', 'exists', 'exists_one', 'map', 'filter'] as const
type Macro = (typeof MACROS)[number]

function isMacro(name: string): name is Macro {
  return MACROS.some((macro) => macro === name)
}

/** The items of a list, the keys of a map. */
function itemsOf(macro: Macro, over: unknown, cost: Cost): readonly unknown[] {
  if (Array.isArray(over)) return over
  if (!isMap(over)) return noOverload(macro, over)
  const keys = Object.keys(over)
  // However few of them are looked at.
  cost.spend(keys.length)
  return keys
}

/** '' = the key is computed. */
function literalOf(key: ASTNode): string {
  return key.op === 'value' ? String(key.args) : ''
}

function variableIn(name: string, scope: Scope): unknown {
  for (let one: Scope | undefined = scope; one !== undefined; one = one.outer) if (one.name === name) return one.value
  throw new ExpressionFault(`undeclared reference to ${name}`)
}

function bool(value: unknown): boolean {
  return typeof value === 'boolean' ? value : noOverload('bool', value)
}

/** Empty = there is none. */
function lookUp(value: unknown, key: unknown): readonly [] | readonly [unknown] {
  if (isMap(value)) return typeof key === 'string' && Object.hasOwn(value, key) ? [value[key]] : []
  if (!Array.isArray(value) || !isNumber(key)) return noOverload('_[_]', value, key)
  const at = Number(key)
  return Number.isInteger(at) && at >= 0 && at < value.length ? [value[at]] : []
}

function optionally(value: unknown, key: unknown): Optional {
  if (!(value instanceof Optional)) return new Optional(lookUp(value, key))
  return value.values.length === 0 ? NONE : new Optional(lookUp(value.values[0], key))
}
