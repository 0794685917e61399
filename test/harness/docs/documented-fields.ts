// What a page says of the fields of an object, against their schema: every default, and the range of every number that has one
// stated. The page explains fields by comments in a manifest, or by the rows of a table.

import { isPair, isScalar, LineCounter, parseDocument, visit } from 'yaml'
import { impliedDefault, type JsonSchema } from '../../../src/kit/api/json/json-schema.ts'

/** `spec.servers.weight` -> its documentation. */
export type Explanations = ReadonlyMap<string, string>

/** Explanations of a manifest's fields: from the comment behind a field, and the lines of comments below it. */
export function explanationsOf(manifest: string): Explanations {
  const counter = new LineCounter()
  const pathsAt = new Map<number, string[]>()
  visit(parseDocument(manifest, { lineCounter: counter }), {
    Pair(_, { key }, parents) {
      if (!isScalar(key)) return
      const above = parents.filter(isPair).map((pair) => (isScalar(pair.key) ? String(pair.key.value) : ''))
      const { line } = counter.linePos(key.range?.[0] ?? 0)
      const path = [...above, String(key.value)].join('.')
      const others = pathsAt.get(line)
      if (others === undefined) pathsAt.set(line, [path])
      else others.push(path)
    },
  })
  const said = new Map<string, string>()
  let paths: readonly string[] = []
  for (const [index, line] of manifest.split('\n').entries()) {
    const comment = /(?:^|\s)#\s+(.*)$/.exec(line)?.[1] ?? ''
    // A line with only a comment continues that of the field above.
    paths = pathsAt.get(index + 1) ?? (comment === '' ? [] : paths)
    for (const path of paths) said.set(path, `${said.get(path) ?? ''} ${comment}`.trim())
  }
  return said
}

/**
 * Where a page says something else than the schema of `root` (spec or status), or leaves a default out.
 * @param inProse fields that the page explains elsewhere
 */
export function documentationErrors(
  said: Explanations,
  whole: JsonSchema,
  root: string,
  inProse: (path: string) => boolean = () => false,
): string[] {
  const errors: string[] = []
  for (const [path, schema] of fieldsOf(whole, root)) {
    // The comment of a map or list covers its content, too.
    if (schema.type === 'object' || schema.type === 'array') continue
    const implied = impliedDefault(schema)
    const text = said.get(path) ?? ''
    const stated = statedDefaults(text, schema)
    if (implied === undefined) {
      if (stated.length > 0) errors.push(`${path} has no default, the page says ${stated.join()}`)
    } else if (stated.some((value) => value !== String(implied)) || (stated.length === 0 && !inProse(path))) {
      errors.push(`${path} has the default ${String(implied)}, the page says ${stated.join() || 'nothing'}`)
    }
    for (const [, minimum, maximum] of text.matchAll(/(\d+) to (\d+)/g)) {
      if (Number(minimum) === schema.minimum && Number(maximum) === schema.maximum) continue
      errors.push(`${path} is from ${schema.minimum} to ${schema.maximum}, the page says ${minimum} to ${maximum}`)
    }
  }
  for (const path of said.keys()) {
    if (path.split('.')[0] === root && !isKnown(path, whole)) errors.push(`${path} is not in the schema`)
  }
  return errors
}

/** `default 100`, `defaults to 100`, `RoundRobin (default)`; prose (`default: all`) and what another field says are none. */
function statedDefaults(text: string, schema: JsonSchema): string[] {
  const found = [
    ...text.matchAll(/\b[Dd]efaults?(?: to)? ['`"]?([^\s;,:()'`"]+)['`"]?/g),
    ...text.matchAll(/['`"]?([^\s'`"]*)['`"]? \(default\)/g),
  ].map(([, value = '']) => value.replace(/\.$/, ''))
  const { description = '' } = schema
  // The default of a setting is that of the flag.
  const values = found.filter((value) => value !== '' && !value.startsWith('--'))
  return values.filter((value) => impliedDefault(schema) !== undefined || !description.includes(value))
}

function* fieldsOf(schema: JsonSchema, path: string): Generator<readonly [string, JsonSchema]> {
  yield [path, schema]
  if (schema.items !== undefined) yield* fieldsOf(schema.items, path)
  for (const [name, field] of Object.entries(schema.properties ?? {})) yield* fieldsOf(field, `${path}.${name}`)
}

function isKnown(path: string, whole: JsonSchema): boolean {
  let schema: JsonSchema | undefined = whole
  for (const name of path.split('.').slice(1)) {
    while (schema?.items !== undefined) schema = schema.items
    schema = schema?.properties?.[name] ?? schema?.additionalProperties
  }
  return schema !== undefined
}
