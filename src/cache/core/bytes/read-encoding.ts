// How what a cluster sends of one resource is read, in each encoding.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import { readProtobufStatus } from '../../../kube/core/objects/protobuf-status.ts'
import type { SelectableField } from '../fields/selectable-fields.ts'
import { malformed } from './malformed.ts'
import { FactsReader, type ObjectFacts } from './object-facts.ts'
import type { ObjectForm, TypeMeta } from './object-form.ts'
import { type ProtobufFacts, ProtobufFactsReader } from './protobuf-facts.ts'
import { type ListLimits, ListSplitter } from './split-list.ts'
import { ProtobufListSplitter, readFrame } from './split-protobuf.ts'
import { type EventBytes, readEvent } from './watch-event.ts'

/** What is known of an object that is kept. */
export type KeptFacts = ObjectFacts | ProtobufFacts

export interface ReadList extends TypeMeta {
  readonly resourceVersion: string
  /** '' = this is all. */
  readonly next: string
  readonly form: ObjectForm
  /** As a watch has them. */
  readonly objects: readonly Buffer[]
}

/** All of it throws MalformedErrors. */
export interface EncodingReader {
  list(body: Buffer, limits: ListLimits): ReadList
  event(bytes: Buffer): EventBytes
  facts(object: Buffer): KeptFacts
  /** The resourceVersion of a bookmark. */
  bookmark(object: Buffer): string
  /** The Status of an ERROR. */
  status(object: Buffer): JsonObject
}

/** @param fields kept of every object */
export function jsonReader(fields: readonly SelectableField[]): EncodingReader {
  const reader = new FactsReader(fields)
  return {
    list: (body, limits) => {
      const objects: Buffer[] = []
      const splitter = new ListSplitter(limits, (object) => objects.push(Buffer.from(object)))
      splitter.feed(body)
      return { ...splitter.end(), objects }
    },
    event: readEvent,
    facts: (object) => reader.read(object),
    bookmark: (object) => reader.readBookmark(object).resourceVersion,
    status: (object) => {
      try {
        return recordOf(JSON.parse(object.toString()))
      } catch {
        throw malformed('an error is not JSON')
      }
    },
  }
}

/** @param fields kept of every object */
export function protobufReader(fields: readonly SelectableField[]): EncodingReader {
  const reader = new ProtobufFactsReader(fields)
  return {
    list: (body, limits) => {
      const objects: Buffer[] = []
      const splitter = new ProtobufListSplitter(limits, (object) => objects.push(object))
      splitter.feed(body)
      return { ...splitter.end(), form: 'protobuf', objects }
    },
    event: readFrame,
    facts: (object) => reader.read(object),
    bookmark: (object) => reader.readBookmark(object).resourceVersion,
    status: (object) => readProtobufStatus(object) ?? {},
  }
}
