// Answers to GET and LIST: spliced of the bytes of objects.

import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { type AnswerSource, OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import { type ListFrame, listFrame, listItem, objectBody } from '../core/bytes/answers.ts'
import type { JsonForm } from '../core/bytes/json-form.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import type { CachedObject } from '../state/cached-object.ts'
import { deliveryMs } from './delivery-limits.ts'
import { Pieces } from './pieces.ts'

/** Sends an answer whose length is known. */
type Deliver = (permit: Permit) => Promise<undefined>

/** @param frame around its items */
export function deliverList(
  { list, form, version }: CachedCollection,
  objects: readonly CachedObject[],
  hit: () => void,
): Deliver {
  const frame = listFrame(list, version, form)
  return deliver(lengthOf(frame, objects, form), () => partsOf(frame, objects, form), hit)
}

export function deliverObject(object: CachedObject, hit: () => void): Deliver {
  const answer = objectBody(object.json)
  return deliver(answer.length, () => [answer].values(), hit)
}

function deliver(length: number, parts: () => Iterator<Buffer>, hit: () => void): Deliver {
  return (permit) => {
    hit()
    const rest = parts()
    const pieces = new Pieces()
    let isOver = false
    let timer: NodeJS.Timeout | undefined
    const source: AnswerSource = {
      next: () => pieces.next(() => rest.next().value) ?? 'end',
      over: () => {
        isOver = true
        clearTimeout(timer)
        rest.return?.()
      },
    }
    const answer = new OwnAnswer(permit, source)
    answer.begin(['content-type', 'application/json', 'content-length', String(length)])
    if (!isOver) timer = setTimeout(() => answer.drop(), deliveryMs(length)).unref()
    return Promise.resolve(undefined)
  }
}

function lengthOf({ empty, first, next, last }: ListFrame, objects: readonly CachedObject[], form: JsonForm): number {
  if (objects.length === 0) return empty.length
  let bytes = first.length + next.length * (objects.length - 1) + last.length
  for (const { bytes: all, facts } of objects) bytes += form === 'sorted' ? all : all - facts.bare
  return bytes
}

function* partsOf(
  { empty, first, next, last }: ListFrame,
  objects: readonly CachedObject[],
  form: JsonForm,
): Generator<Buffer, undefined> {
  if (objects.length === 0) yield empty
  let before = first
  for (const { json, facts } of objects) {
    yield before
    yield listItem(json, facts, form)
    before = next
  }
  if (objects.length > 0) yield last
}
