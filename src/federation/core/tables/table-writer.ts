// Tables in JSON, as kube-apiserver writes them for kubectl (apiserver/pkg/endpoints/handlers/response.go, asTable), of objects as they are shown among those
// of all members. The bytes of an object are parsed for its cells, and spliced into its row.

import type { EventObject } from '../../../cache/core/bytes/answer-form.ts'
import { type EventType, type ListFrame, PARTIAL, partialMetadata } from '../../../cache/core/bytes/answers.ts'
import { INITIAL_EVENTS_END } from '../../../cache/core/bytes/object-facts.ts'
import type { JsonForm } from '../../../cache/core/bytes/object-form.ts'
import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { IncludeObject } from '../../../kube/core/tables/include-object.ts'
import { CLUSTER_ANNOTATION } from '../objects.ts'
import { at, type PrintedObject, type Printer, type TableColumn, tableColumn } from './printer.ts'

export interface TableAs {
  /** meta.k8s.io/v1, or v1beta1. */
  readonly apiVersion: string
  readonly include: IncludeObject
  readonly printer: Printer
  /** In which the objects are kept. */
  readonly json: JsonForm
}

/** The last: what takes columns by their number finds each where a member has it. */
const CLUSTER: TableColumn = tableColumn('Cluster', () => null).column

export class TableWriter {
  readonly #as: TableAs
  readonly #columns: string
  readonly #partialHead: Buffer

  constructor(as: TableAs) {
    this.#as = as
    this.#columns = JSON.stringify([...as.printer.columns, CLUSTER])
    const { kind } = PARTIAL
    this.#partialHead = Buffer.from(`${JSON.stringify({ kind, apiVersion: as.apiVersion }).slice(0, -1)},"metadata":`)
  }

  /** @param metadata of the list */
  frame(metadata: object): ListFrame {
    const head = this.#head(metadata, true)
    return {
      empty: Buffer.from(`${head}]}\n`),
      first: Buffer.from(head),
      next: Buffer.from(','),
      last: Buffer.from(']}\n'),
    }
  }

  row(object: EventObject, nowMs: number): Buffer {
    return this.#row(object, parsed(object), nowMs)
  }

  /** The answer to a GET. */
  object(object: EventObject, nowMs: number): Buffer {
    return Buffer.concat([...this.#tableOfOne(object, nowMs, true), NEWLINE])
  }

  /** @param isFirst of its watch: the columns are those of all that follow */
  event(type: EventType, object: EventObject, nowMs: number, isFirst: boolean): Buffer {
    const head = Buffer.from(`{"type":"${type}","object":`)
    return Buffer.concat([head, ...this.#tableOfOne(object, nowMs, isFirst), EVENT_END])
  }

  #tableOfOne(object: EventObject, nowMs: number, hasColumns: boolean): readonly Buffer[] {
    const printed = parsed(object)
    const resourceVersion = textOf(at(printed, 'metadata.resourceVersion'))
    return [Buffer.from(this.#head({ resourceVersion }, hasColumns)), this.#row(object, printed, nowMs), TABLE_END]
  }

  #head(metadata: object, hasColumns: boolean): string {
    const type = { kind: 'Table', apiVersion: this.#as.apiVersion, metadata }
    return `${JSON.stringify(type).slice(0, -1)},"columnDefinitions":${hasColumns ? this.#columns : 'null'},"rows":[`
  }

  #row(object: EventObject, printed: PrintedObject, nowMs: number): Buffer {
    const { printer } = this.#as
    const annotations = recordOf(at(printed, 'metadata.annotations'))
    const cells = [...printer.cells(printed, nowMs), textOf(annotations[CLUSTER_ANNOTATION])]
    const conditions = printer.conditions?.(printed)
    const shown = conditions === undefined ? '' : `,"conditions":${JSON.stringify(conditions)}`
    const head = Buffer.from(`{"cells":${JSON.stringify(cells)}${shown},"object":`)
    // The mark of the end of the state is an annotation, which has to be there.
    return Buffer.concat([head, ...this.#included(object, INITIAL_EVENTS_END in annotations), ROW_END])
  }

  #included({ content, facts }: EventObject, isMark: boolean): readonly Buffer[] {
    const { include, json } = this.#as
    if (include === 'Object') return [content]
    if (include === 'None' && !isMark) return [NULL]
    return [this.#partialHead, partialMetadata(content, facts, json), ROW_END]
  }
}

const NEWLINE = Buffer.from('\n')
const NULL = Buffer.from('null')
const ROW_END = Buffer.from('}')
const TABLE_END = Buffer.from(']}')
const EVENT_END = Buffer.from('}\n')

/** What is kept is JSON: it was looked at byte by byte when it came. */
function parsed({ content }: EventObject): PrintedObject {
  return recordOf(JSON.parse(content.toString('utf8')))
}
