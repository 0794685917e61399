// Decodes a request's body strictly: duplicate fields are reported, nothing is guessed.

import { goQuote } from './go-values.ts'
import { parseJson, TooManyValues } from './json-text.ts'
import { parseYaml } from './yaml-text.ts'

/**
 * Maximum characters of YAML that is not JSON: parsing takes a microsecond per character, in one turn of the event loop. Every Kubernetes
 * client sends JSON, even as YAML.
 */
export const MAX_YAML_LENGTH: number = 32 * 1024

/**
 * Same, where callers with minimal rights may send it as often as they like: DeleteOptions and reviews of oneself have some hundred
 * characters.
 */
export const MAX_SMALL_YAML_LENGTH = 1024

/** YAML that is not JSON and is too long. Nothing of it was parsed. */
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
  /** Paths of duplicate fields; the last one wins. At most 100. */
  readonly duplicates: readonly string[]
  /** `duplicates` as worded by kube-apiserver's strict decoding: one message per path for JSON, one for all for YAML. */
  readonly strictErrors: readonly string[]
}

/**
 * The first document of a YAML text; the rest is not read, as in kube-apiserver.
 * @param maxYaml characters of YAML that is not JSON
 * @throws {YamlTooLong}
 * @throws {TooManyValues}
 * @throws {SyntaxError} if the text is neither JSON nor YAML that JSON can represent, or nested deeper than 500 levels; with the message of
 * Go's encoding/json, or one that begins with `yaml: `
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

/** kubectl sends JSON as YAML; JSON parses faster. Anything unusual is left to the YAML parser. */
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
