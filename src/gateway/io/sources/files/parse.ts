// Parses a configuration file into objects with line numbers. Documents are split before parsing, so that an error in one does not affect the next,
// and unchanged documents are not parsed again (YAML is slow).

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { isRecord } from '../../../../kit/api/json/object-shape.ts'
import { errorMessage } from '../../../../kit/api/validation/error-message.ts'
import { childPath, pathSegments } from '../../../../kit/api/validation/field-errors.ts'
import type { SourceError } from '../../../api/resource-source.ts'

/** One object of a file; items of a List are separate objects. */
export interface SourceObject {
  readonly file: string
  /** 1-based line on which the object begins. */
  readonly line: number
  readonly value: unknown
  /** Line of a field; if absent, of its parent. */
  lineOf(path: string): number
}

interface ParsedFile {
  readonly objects: readonly SourceObject[]
  readonly problems: readonly SourceError[]
  /** Whether a part of the file could not be parsed, and may have contained anything. */
  readonly broken: boolean
}

/** One document, independent of its starting line. */
interface ParsedDocument {
  readonly value: unknown
  readonly root: unknown
  readonly lines: LineCounter
  /** Lines are relative to the document. */
  readonly errors: readonly Omit<SourceError, 'file'>[]
  readonly broken: boolean
}

/** Limit of alias expansion, against YAML bombs. */
const MAX_ALIAS_COUNT = 100

export class FileParser {
  #known = new Map<string, ParsedDocument>()
  #used = new Map<string, ParsedDocument>()

  parse(file: string, text: string): ParsedFile {
    const objects: SourceObject[] = []
    const problems: SourceError[] = []
    let broken = false
    for (const { source, firstLine } of splitDocuments(text)) {
      const parsed = this.#document(source)
      if (parsed.broken) broken = true
      for (const error of parsed.errors) problems.push({ ...error, file, line: error.line + firstLine })
      if (parsed.broken || parsed.value === null) continue
      for (const object of objectsIn(file, firstLine, parsed)) objects.push(object)
    }
    return { objects, problems, broken }
  }

  /** After all files of a read: evicts cached documents that are no longer in any file. */
  endReading(): void {
    this.#known = this.#used
    this.#used = new Map()
  }

  #document(source: string): ParsedDocument {
    const parsed = this.#known.get(source) ?? this.#used.get(source) ?? parseOne(source)
    this.#used.set(source, parsed)
    return parsed
  }
}

/** `firstLine` counts from 0. A line that begins with `---` always ends a document (YAML 1.2 section 9.1.2). */
function splitDocuments(text: string): { source: string; firstLine: number }[] {
  const documents: { source: string; firstLine: number }[] = []
  let lines: string[] = []
  let firstLine = 0
  const all = text.replace(/^\ufeff/, '').split('\n')
  for (const [number, line] of all.entries()) {
    if (/^---(\s|$)/.test(line)) {
      documents.push({ source: lines.join('\n'), firstLine })
      lines = []
      firstLine = number
    }
    // Directives (%YAML) have no effect: the version is always 1.2, as documented.
    lines.push(line.startsWith('%') ? '' : line)
  }
  documents.push({ source: lines.join('\n'), firstLine })
  return documents
}

function parseOne(source: string): ParsedDocument {
  const lines = new LineCounter()
  const failed = (line: number, path: string, message: string, fix: string): ParsedDocument => ({
    value: null,
    root: null,
    lines,
    errors: [{ reason: 'FieldValueInvalid', line, path, message, fix, severity: 'error' }],
    broken: true,
  })
  try {
    const document = parseDocument(source, {
      version: '1.2',
      schema: 'core',
      resolveKnownTags: false,
      stringKeys: true,
      // Quadratic in the library, unlike firstDuplicate.
      uniqueKeys: false,
      lineCounter: lines,
      prettyErrors: false,
      logLevel: 'silent',
    })
    const [error] = document.errors
    if (error !== undefined) {
      return failed(lines.linePos(error.pos[0]).line, '', `is not valid YAML: ${error.message}`, 'fix the syntax here')
    }
    const duplicate = firstDuplicate(document.contents, '')
    if (duplicate !== undefined) {
      const { line } = lines.linePos(duplicate.offset)
      return failed(line, duplicate.path, 'is given twice in the same map', 'keep one of the two')
    }
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIAS_COUNT })
    const errors = document.warnings.map(({ pos, message }) => ({
      reason: 'FieldValueInvalid' as const,
      line: lines.linePos(pos[0]).line,
      path: '',
      message,
      fix: 'remove the tag',
      severity: 'warning' as const,
    }))
    return { value, root: document.contents, lines, errors, broken: false }
  } catch (error) {
    // Unknown and excessive aliases, and nesting deeper than the stack.
    const message = errorMessage(error)
    const alias = source.indexOf(`*${/: (\S+)$/.exec(message)?.[1] ?? ''}`)
    const { line } = lines.linePos(Math.max(0, alias))
    return failed(line, '', `cannot be read: ${message}`, 'write the values out instead of aliases, less deeply nested')
  }
}

function firstDuplicate(node: unknown, path: string): { path: string; offset: number } | undefined {
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      const found = firstDuplicate(item, `${path}[${index}]`)
      if (found !== undefined) return found
    }
  }
  if (!isMap(node)) return undefined
  const keys = new Set<string>()
  for (const { key, value } of node.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const at = childPath(path, name)
    if (keys.has(name)) return { path: at, offset: isScalar(key) ? (key.range?.[0] ?? 0) : 0 }
    keys.add(name)
    const found = firstDuplicate(value, at)
    if (found !== undefined) return found
  }
  return undefined
}

/** `firstLine` counts from 0, lines within the document from 1. */
function objectsIn(file: string, firstLine: number, { value, root, lines }: ParsedDocument): SourceObject[] {
  const source = (node: unknown, object: unknown): SourceObject => {
    const lineOf = (path: string): number => firstLine + lines.linePos(offsetOf(node, path)).line
    return { file, line: lineOf(''), value: object, lineOf }
  }
  const kind = isRecord(value) ? value['kind'] : undefined
  const items = isRecord(value) ? value['items'] : undefined
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [source(root, value)]
  const list = isMap(root) ? root.get('items', true) : undefined
  return items.map((item: unknown, index) => source(isSeq(list) ? list.items[index] : root, item))
}

/** Position of the field, or of the deepest existing part of its path. */
function offsetOf(root: unknown, path: string): number {
  let node = root
  let offset = startOf(node)
  for (const segment of pathSegments(path)) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === segment)
      if (pair === undefined) break
      offset = startOf(pair.key)
      node = pair.value
    } else if (isSeq(node) && /^\d+$/.test(segment) && node.items[Number(segment)] !== undefined) {
      node = node.items[Number(segment)]
      offset = startOf(node)
    } else break
  }
  return offset
}

function startOf(node: unknown): number {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? (node.range?.[0] ?? 0) : 0
}
