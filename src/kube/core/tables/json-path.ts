// The JSONPath of printer columns: the part that apiextensions allows (apiserver/validation: simple paths) plus the one
// filter that conditions need (client-go/util/jsonpath). `.a.b`, `['a.b']`, `.a\.b`, `[0]`, `[-1]`, `[*]`,
// `[?(@.type=="Ready")]`.

/** One step of a path. */
type PathStep =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'filter'; readonly path: readonly PathStep[]; readonly equal: boolean; readonly value: unknown }

type JsonPath = readonly PathStep[]

const FILTER = /^\?\(\s*@((?:\.[\w-]+|\[['"][^'"\]]*['"]\])+)\s*(==|!=)\s*(.+?)\s*\)$/s

/** @throws {SyntaxError} */
export function parseJsonPath(text: string): JsonPath {
  const steps: PathStep[] = []
  let at = text.startsWith('$') ? 1 : 0
  while (at < text.length) {
    const char = text[at]
    if (char === '.') at = fieldStep(text, at + 1, steps)
    else if (char === '[') at = bracketStep(text, at, steps)
    else if (at === 0) at = fieldStep(text, 0, steps)
    else throw new SyntaxError(`unexpected ${JSON.stringify(char)} in JSONPath ${text}`)
  }
  return steps
}

/** The values at the path, in order; none if a step is missing. */
export function findJsonPath(root: unknown, path: JsonPath): unknown[] {
  let found: unknown[] = [root]
  for (const step of path) found = found.flatMap((value) => follow(value, step))
  return found
}

function follow(value: unknown, step: PathStep): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  switch (step.kind) {
    case 'field':
      return Object.hasOwn(value, step.name) ? [(value as Record<string, unknown>)[step.name]] : []
    case 'index': {
      if (!Array.isArray(value)) return []
      const element: unknown = value.at(step.index)
      return element === undefined ? [] : [element]
    }
    case 'all':
      return Object.values(value)
    case 'filter':
      return Object.values(value).filter((element) => {
        const [tested] = findJsonPath(element, step.path)
        return tested !== undefined && (tested === step.value) === step.equal
      })
  }
}

/** Returns where the next step begins. `\.` in a name is a dot. */
function fieldStep(text: string, from: number, steps: PathStep[]): number {
  let name = ''
  let at = from
  for (; at < text.length; at++) {
    const char = text[at]
    if (char === '.' || char === '[') break
    if (char === '\\') at++
    name += text[at] ?? ''
  }
  // `.` alone is the root, and `.['a']` is `['a']`.
  if (name === '*') steps.push({ kind: 'all' })
  else if (name !== '') steps.push({ kind: 'field', name })
  else if (at === from && text[at] === '.') throw new SyntaxError(`recursive descent is not supported: ${text}`)
  return at
}

function bracketStep(text: string, from: number, steps: PathStep[]): number {
  const end = closingBracket(text, from)
  const inside = text.slice(from + 1, end).trim()
  steps.push(bracketContent(text, inside))
  return end + 1
}

function bracketContent(text: string, inside: string): PathStep {
  if (inside === '*') return { kind: 'all' }
  if (/^-?\d+$/.test(inside)) return { kind: 'index', index: Number(inside) }
  const quoted = /^(['"])(.*)\1$/s.exec(inside)
  if (quoted !== null) return { kind: 'field', name: (quoted[2] ?? '').replaceAll('\\', '') }
  const filter = FILTER.exec(inside)
  if (filter === null) throw new SyntaxError(`unsupported ${JSON.stringify(`[${inside}]`)} in JSONPath ${text}`)
  return {
    kind: 'filter',
    path: parseJsonPath(filter[1] ?? ''),
    equal: filter[2] === '==',
    value: literal(text, filter[3] ?? ''),
  }
}

/** The bracket that closes the one at `from`; skips those in quotes and in a filter. */
function closingBracket(text: string, from: number): number {
  let depth = 0
  let quote = ''
  for (let at = from; at < text.length; at++) {
    const char = text[at] ?? ''
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '[') depth++
    else if (char === ']' && --depth === 0) return at
  }
  throw new SyntaxError(`unterminated bracket in JSONPath ${text}`)
}

function literal(text: string, source: string): unknown {
  const quoted = /^(['"])(.*)\1$/s.exec(source)
  if (quoted !== null) return quoted[2] ?? ''
  if (source === 'true' || source === 'false') return source === 'true'
  const number = Number(source)
  if (Number.isNaN(number)) throw new SyntaxError(`unsupported value ${source} in JSONPath ${text}`)
  return number
}
