// Tables for a caller: which columns they have, and how its answers are written in them.

import type { AnswerForm } from '../../cache/core/bytes/answer-form.ts'
import { writable } from '../../cache/core/bytes/malformed.ts'
import type { JsonForm } from '../../cache/core/bytes/object-form.ts'
import { queryOptionsOf } from '../../cache/core/requests/read-request.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type { CachedObject } from '../../cache/state/cached-object.ts'
import { threadScheduler } from '../../gateway/io/scheduling/thread-scheduler.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { includeObjectOf } from '../../kube/core/tables/include-object.ts'
import type { Printer } from '../core/tables/printer.ts'
import { builtInPrinter, CUSTOM_PRINTER, customPrinter, PLAIN_PRINTER } from '../core/tables/printers.ts'
import { TableWriter } from '../core/tables/table-writer.ts'
import type { AskedMember } from './asked-members.ts'

/** To parse an object takes as long as to send so many times its bytes. */
const PARSED_BYTES = 4
const DEFINITIONS = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }

interface TabledResource {
  readonly group: string
  readonly version: string
  readonly resource: string
}

/** What answers in Tables are written by. */
export interface ShownTables {
  /** In place of the form that objects are sent in. */
  readonly form: AnswerForm
  readonly writer: TableWriter
}

/**
 * @param form of the objects, which are kept in `json`
 * @param apiVersion of the Tables
 * @param members that the caller may read
 */
export function shownTables(
  { charge, gw, target }: Exchange,
  form: AnswerForm,
  json: JsonForm,
  apiVersion: string,
  resource: TabledResource,
  members: readonly AskedMember[],
  kept: Pick<CachedCollections, 'get'>,
): ShownTables | Refusal {
  const queryAt = target.indexOf('?')
  const options = queryOptionsOf(queryAt < 0 ? '' : target.slice(queryAt + 1))
  const include = includeObjectOf(options?.get('includeObject') ?? '')
  if (typeof include === 'object') return refuse('bad-request', include.invalid)
  const printer = builtInPrinter(resource) ?? otherPrinter(json, resource, members, kept)
  const writer = new TableWriter({ apiVersion, include, printer, json })
  let isFirst = true
  return {
    writer,
    form: {
      ...form,
      object: (object) => writer.object(object, gw.clock.now()),
      event: (type, object) => {
        threadScheduler.chargeAnswer(charge, object.content.length * PARSED_BYTES)
        const event = writer.event(type, object, gw.clock.now(), isFirst)
        isFirst = false
        return [event]
      },
    },
  }
}

function otherPrinter(
  json: JsonForm,
  resource: TabledResource,
  members: readonly AskedMember[],
  kept: Pick<CachedCollections, 'get'>,
): Printer {
  return json === 'declared' ? PLAIN_PRINTER : (definedPrinter(resource, members, kept) ?? CUSTOM_PRINTER)
}

/** As the first member says whose read cache keeps definitions. Cells are made here: so all have the same columns. */
function definedPrinter(
  { group, version, resource }: TabledResource,
  members: readonly AskedMember[],
  kept: Pick<CachedCollections, 'get'>,
): Printer | undefined {
  for (const { read } of members) {
    const id = { ...DEFINITIONS, cluster: read.live.compiled.name, namespace: '', encoding: 'json' } as const
    const definition = kept.get(id)?.get('', `${resource}.${group}`)
    if (definition !== undefined) return printerOfVersion(definition, version)
  }
  return undefined
}

/** By definition and version: long definitions are not read for each request. */
const PRINTERS = new WeakMap<CachedObject, Map<string, Printer | undefined>>()

function printerOfVersion(definition: CachedObject, version: string): Printer | undefined {
  const known = PRINTERS.get(definition) ?? new Map<string, Printer | undefined>()
  PRINTERS.set(definition, known)
  if (!known.has(version))
    known.set(
      version,
      writable(() => customPrinter(definition.content, version)),
    )
  return known.get(version)
}
