// Bookmarks of one resource, in the form in which it is kept.

import type { EventObject } from './answer-form.ts'
import { BookmarkTemplate, plainBookmark } from './answers.ts'
import { FactsReader } from './object-facts.ts'
import type { ObjectForm, TypeMeta } from './object-form.ts'
import { ProtobufBookmarkTemplate, plainProtobufBookmark } from './protobuf-answers.ts'
import { ProtobufFactsReader } from './protobuf-facts.ts'

export interface BookmarkMaker {
  /** The object of a bookmark. */
  object(resourceVersion: string, endsInitialEvents: boolean): EventObject
}

/**
 * @param type of the objects
 * @param upstream the object of one of the cluster's own; undefined = there was none yet
 * @throws {MalformedError}
 */
export function bookmarkMaker(form: ObjectForm, type: TypeMeta, upstream: Uint8Array | undefined): BookmarkMaker {
  const bytes = upstream && Buffer.from(upstream)
  if (form === 'protobuf') {
    const reader = new ProtobufFactsReader([])
    return makerOf(new ProtobufBookmarkTemplate(bytes ?? plainProtobufBookmark(type), reader), reader)
  }
  const reader = new FactsReader([])
  return makerOf(new BookmarkTemplate(bytes ?? plainBookmark(type, form), form, reader), reader)
}

function makerOf(
  template: { object(resourceVersion: string, endsInitialEvents: boolean): Buffer },
  reader: { readBookmark(object: Buffer): EventObject['facts'] },
): BookmarkMaker {
  return {
    object: (resourceVersion, endsInitialEvents) => {
      const content = template.object(resourceVersion, endsInitialEvents)
      return { content, facts: reader.readBookmark(content) }
    },
  }
}
