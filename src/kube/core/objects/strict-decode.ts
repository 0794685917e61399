// The text of a request's body -> a value, strictly: fields that are given twice are told, nothing is guessed.

import { goQuote } from './go-values.ts'
import { parseJson, TooManyValues } from './json-text.ts'
import { parseYaml } from './yaml-text.ts'

/**
 * Characters of YAML that is not JSON: a character takes a microsecond to read, in one turn of the event loop. Every client of
 * Kubernetes sends JSON, also where it says YAML.
 */
export const MAX_YAML_LENGTH: number = 32 * 1024

/**
 * The same where whoever may only ask about himself, or delete, may send it, as often as he likes: DeleteOptions and reviews have
 * some hundred characters.
 */
export const MAX_SMALL_YAML_LENGTH = 1024

/** YAML that is not JSON, and longer than it may be here. Nothing of it was read. */
export class YamlTooLong extends SyntaxError {
  /** Characters. */
  readonly limit: number

  constructor(length: number, limit: number) {
    super(
      `yaml: the text has ${length} characters, the limit of this server is ${limit}: send JSON, which may be longer`,
    )
    this.limit = limit
  }
}

export interface DecodedObject {
  readonly value: unknown
  /** Paths of the fields that are given twice; the last one holds. At most 100. */
  readonly duplicates: readonly string[]
  /** `duplicates` as kube-apiserver's strict decoding words them: one message for each path of JSON, one for all of YAML. */
  readonly strictErrors: readonly string[]
}

/**
 * The first document of a YAML text; what follows it is not read, as in kube-apiserver.
 * @param maxYaml characters of YAML that is not JSON
 * @throws {YamlTooLong}
 * @throws {TooManyValues}
 * @throws {SyntaxError} when the text is neither JSON nor YAML that JSON could hold, or nested deeper than 500 levels; with the
 * message of Go's encoding/json, or one that begins with `yaml: `
 */
export function decodeObject(text: string, format: 'json' | 'yaml', maxYaml: number = MAX_YAML_LENGTH): DecodedObject {
  if (format === 'json') {
    const { value, duplicates } = parseJson(text)
    return { value, duplicates, strictErrors: duplicates.map((path) => `duplicate field ${goQuote(path)}`) }
  }
  const fast = plainJson(text)
  if (fast !== undefined) return fast
  if (text.length > maxYaml) throw new YamlTooLong(text.length, maxYaml)
  const { value, duplicates, duplicateMessages } = parseYaml(text)
  const strictErrors =
    duplicateMessages.length === 0 ? [] : [`yaml: unmarshal errors:\n  ${duplicateMessages.join('\n  ')}`]
  return { value, duplicates, strictErrors }
}

/** kubectl sends JSON where YAML is asked for, which is faster to read as what it is. What is odd is left to YAML. */
function plainJson(text: string): DecodedObject | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    const { value, duplicates } = parseJson(text)
    return duplicates.length === 0 ? { value, duplicates, strictErrors: [] } : undefined
  } catch (error) {
    if (error instanceof TooManyValues) throw error
    return undefined
  }
}
