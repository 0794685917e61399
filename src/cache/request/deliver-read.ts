// Answers to GET and LIST: spliced of the bytes of objects.

import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { type AnswerSource, OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import type { AnswerForm, ListPieces } from '../core/bytes/answer-form.ts'
import { MalformedError } from '../core/bytes/malformed.ts'
import { type PartReader, WholeParts } from '../core/bytes/part-reader.ts'
import {
  canCompress,
  DEFLATED_BYTES,
  type DeflatedSource,
  GZIP_BYTES,
  GzipSource,
  LEAST_GZIP_BYTES,
  OwnParts,
  takesGzip,
} from '../io/gzip-source.ts'
import type { CachedCollection } from '../state/cached-collection.ts'
import { deliveryMs } from './delivery-limits.ts'
import { PIECE_BYTES, Pieces } from './pieces.ts'
import { type SharedList, SharedParts } from './shared-parts.ts'

/** What warnings its cluster's answers have. */
export type Warned = Pick<CachedCollection, 'warnings'>

/** Sends an answer. */
type Deliver = (permit: Permit) => Promise<undefined>

/**
 * @param most bytes, about
 * @param share what others may get the same of, called if it is compressed. Default: nothing
 */
export function deliverList(
  collection: Warned,
  { length, parts }: ListPieces,
  most: number,
  { mediaType }: Pick<AnswerForm, 'mediaType'>,
  hit: () => void,
  share?: () => SharedList | undefined,
): Deliver {
  return deliver({ collection, mediaType, length, most, parts, share }, hit)
}

export function deliverObject(
  collection: Warned,
  answer: Buffer,
  { mediaType }: Pick<AnswerForm, 'mediaType'>,
  hit: () => void,
): Deliver {
  const { length } = answer
  return deliver({ collection, mediaType, length, most: length, parts: () => only(answer) }, hit)
}

function only(part: Buffer): PartReader {
  let rest: Buffer | undefined = part
  return new WholeParts(() => {
    const found = rest
    rest = undefined
    return found
  })
}

/** What the cluster's own answers have. */
export function warningFields({ warnings }: Warned): HeaderList {
  return warnings.flatMap((value) => ['warning', value])
}

interface Answer {
  readonly collection: Warned
  readonly mediaType: string
  /** undefined = it is not known yet. */
  readonly length: number | undefined
  /** About as many bytes at most. */
  readonly most: number
  parts(): PartReader
  readonly share?: (() => SharedList | undefined) | undefined
}

function deliver(of: Answer, hit: () => void): Deliver {
  const { collection, mediaType, length, most, parts } = of
  return (permit) => {
    hit()
    let rest: PartReader | undefined = parts()
    let timer: NodeJS.Timeout | undefined
    const piecesOf = (bytes: number): (() => Buffer | undefined) => {
      const pieces = new Pieces(bytes)
      return () => rest && pieces.next(rest)
    }
    const over = (): void => {
      clearTimeout(timer)
      rest = undefined
    }
    const compressed = compressedParts(permit, of, piecesOf)
    const gzip = compressed && new GzipSource(compressed, over)
    const next = piecesOf(PIECE_BYTES)
    const plain: AnswerSource = {
      next: () => {
        try {
          return next() ?? 'end'
        } catch (error) {
          if (!(error instanceof MalformedError)) throw error
          // What upstream sent cannot be written in this form, and a part of the answer is out.
          answer.drop()
          return undefined
        }
      },
      over,
    }
    const answer: OwnAnswer = new OwnAnswer(permit, gzip ?? plain)
    gzip?.attach(answer)
    const known = length === undefined ? [] : ['content-length', String(length)]
    const how = gzip === undefined ? known : ['content-encoding', 'gzip', 'vary', 'Accept-Encoding']
    answer.begin(['content-type', mediaType, ...how, ...warningFields(collection)])
    if (rest !== undefined) timer = setTimeout(() => answer.drop(), deliveryMs(most)).unref()
    return Promise.resolve(undefined)
  }
}

/** undefined = it is sent as it is. The memory for what is not shared is the caller's: there has to be room for it. */
function compressedParts(
  { exchange }: Permit,
  { length, share }: Answer,
  piecesOf: (bytes: number) => () => Buffer | undefined,
): DeflatedSource | undefined {
  if (length === undefined || length <= LEAST_GZIP_BYTES) return undefined
  if (!takesGzip(headerValue(exchange.list, 'accept-encoding') ?? '')) return undefined
  const shared = share?.()
  if (shared !== undefined) return new SharedParts(shared)
  return canCompress() && exchange.takeMemory(GZIP_BYTES) ? new OwnParts(piecesOf(DEFLATED_BYTES)) : undefined
}
