// The body of a write in YAML, as the member gets it. Clients send JSON even where they say YAML; what people write by hand is changed in place, too, as far
// as every library reads it alike.

import { isMap, isScalar, LineCounter, type Pair, Scalar, type YAMLMap } from 'yaml'
import { MalformedError } from '../../../cache/core/bytes/malformed.ts'
import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { YamlTooLong } from '../../../kube/core/objects/strict-decode.ts'
import { isPlainYaml } from '../../../kube/core/objects/yaml-plain.ts'
import { composeFirstDocument, plainScalar } from '../../../kube/core/objects/yaml-text.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import { type ChangeField, SeenFields, type WrittenMap, type WrittenPlace } from './written-fields.ts'
import { writtenJson } from './written-json.ts'

/** Positions are those of characters, not bytes. */
interface TextEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Another document, or the end of the first. */
const MORE_DOCUMENTS = /\n(?:---|\.\.\.)/

/**
 * @param maxLength characters of what is not JSON
 * @throws {YamlTooLong}
 * @throws {SyntaxError}
 * @throws {UnreadableBody} also for what two libraries may read differently
 */
export function writtenYaml(body: Buffer, places: WrittenMap, change: ChangeField, maxLength: number): Buffer {
  try {
    return writtenJson(body, places, change)
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error
  }
  const text = body.toString('utf8')
  if (text.length > maxLength) throw new YamlTooLong(text.length, maxLength)
  if (!isPlainYaml(body) || MORE_DOCUMENTS.test(text)) throw notPlain()
  const edits: TextEdit[] = []
  const root = composeFirstDocument(text, new LineCounter())
  if (!isMap(root)) throw new UnreadableBody(400, "couldn't get version/kind; the body is not an object")
  editMap(text, root, places, change, edits)
  edits.sort((a, b) => a.start - b.start)
  let [written, at] = ['', 0]
  for (const edit of edits) {
    written += text.slice(at, edit.start) + edit.text
    at = edit.end
  }
  return Buffer.from(written + text.slice(at))
}

function notPlain(): UnreadableBody {
  return new UnreadableBody(
    400,
    'yaml: directives, anchors, aliases, tags, merges, several documents, and what is not UTF-8 with plain line breaks, are not written here: send JSON',
  )
}

function editMap(text: string, map: YAMLMap, places: WrittenMap, change: ChangeField, edits: TextEdit[]): void {
  const seen = new SeenFields()
  for (const pair of map.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : ''
    const place = places.get(key)
    if (place === undefined) continue
    seen.see(key)
    editValue(text, pair, place, change, edits)
  }
}

function editValue(text: string, { value }: Pair, { is }: WrittenPlace, change: ChangeField, edits: TextEdit[]): void {
  if (isMap(value)) {
    if (is === 'cut') edits.push(...annotationCut(text, value))
    else if (typeof is !== 'string') editMap(text, value, is, change, edits)
    return
  }
  if (!isScalar(value) || typeof is !== 'string' || is === 'cut') return
  const shown = textOf(value)
  if (shown === undefined) return
  const written = change(is, shown)
  const { range } = value
  if (written !== shown && range) edits.push({ start: range[0], end: range[1], text: JSON.stringify(written) })
}

/** @returns undefined = a number, null or a boolean, which the member refuses */
function textOf({ type, value }: Scalar): string | undefined {
  const text = String(value ?? '')
  switch (type) {
    case Scalar.PLAIN:
      return typeof plainScalar(text) === 'string' ? text : undefined
    case Scalar.QUOTE_DOUBLE:
    case Scalar.QUOTE_SINGLE:
      return text
    default:
      throw new UnreadableBody(400, 'yaml: names and versions must be on one line here')
  }
}

/** With its line. */
function annotationCut(text: string, annotations: YAMLMap): readonly TextEdit[] {
  const own = annotations.items.filter(({ key }) => isScalar(key) && String(key.value) === CLUSTER_ANNOTATION)
  const seen = new SeenFields()
  return own.map(({ key, value }) => {
    seen.see(CLUSTER_ANNOTATION)
    const from = isScalar(key) ? (key.range?.[0] ?? 0) : 0
    const to = isScalar(value) ? (value.range?.[1] ?? 0) : Number.POSITIVE_INFINITY
    const start = text.lastIndexOf('\n', from) + 1
    const lineEnd = text.indexOf('\n', from)
    const end = lineEnd < 0 ? text.length : lineEnd + 1
    const isOwnLine = annotations.flow !== true && text.slice(start, from).trim() === '' && to <= end
    if (isOwnLine) return { start, end, text: '' }
    throw new UnreadableBody(
      400,
      `yaml: annotation ${CLUSTER_ANNOTATION} must have a line of its own here, or be absent`,
    )
  })
}
