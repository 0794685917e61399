// /openapi/v3 and /openapi/v2 (kube-openapi/pkg/handler and .../handler3). Documents are made when first asked for.

import { type AcceptClause, acceptClauses } from '../http/accept.ts'
import { type Answer, NOT_CACHED, textAnswer } from '../http/answer.ts'
import { type TaggedDocument, tagged, taggedAnswer } from '../http/entity-tag.ts'
import { v2Document } from './v2.ts'
import { encodeV2Document } from './v2-protobuf.ts'
import { documentUrl, V3_DOCUMENTS, v3Document, v3Index } from './v3.ts'

const V2 = '/openapi/v2'
const V3 = '/openapi/v3'
const JSON_TYPE = 'application/json'
/** kubectl asks by the first name; the answer has the second, which is a valid media type. */
const V2_PROTOBUF_ASKED = 'com.github.proto-openapi.spec.v2@v1.0+protobuf'
const V2_PROTOBUF = 'com.github.proto-openapi.spec.v2.v1.0+protobuf'
/** What is fetched by its hash never changes. */
const FOREVER = 'public, immutable, max-age=31536000'
/** `info.version` of the documents: the API has no version of its own. */
const API_VERSION = 'unversioned'

/**
 * The answer to GET of an OpenAPI path; undefined when `path` is none.
 * @param path without the query
 * @param query without `?`
 * @param ifNoneMatch the field, or ''
 */
export function openApiAnswer(path: string, query: string, accept: string, ifNoneMatch: string): Answer | undefined {
  const clauses = acceptClauses(accept === '' ? '*/*' : accept)
  if (path === V2) return v2Answer(clauses, ifNoneMatch)
  if (path === V3 || path === `${V3}/`) return taggedAnswer(index(), ifNoneMatch)
  if (!path.startsWith(`${V3}/`)) return undefined
  const name = path.slice(V3.length + 1)
  const document = v3DocumentAt(name)
  if (document === undefined) return undefined
  if (!clauses.some((clause) => takes(clause, 'json'))) return textAnswer(406, '')
  return v3Answer(name, document, new URLSearchParams(query).get('hash') ?? '', ifNoneMatch)
}

function v3Answer(name: string, document: TaggedDocument, hash: string, ifNoneMatch: string): Answer {
  if (hash === '') return taggedAnswer(document, ifNoneMatch)
  const current = document.tag.slice(1, -1)
  if (hash === current) return taggedAnswer(document, ifNoneMatch, FOREVER)
  const headers = ['location', documentUrl(name, current), 'cache-control', NOT_CACHED]
  return { code: 301, headers, body: Buffer.alloc(0) }
}

/** JSON or protocol buffers, whichever the client wants more. */
function v2Answer(clauses: readonly AcceptClause[], ifNoneMatch: string): Answer {
  for (const clause of clauses) {
    if (takes(clause, 'json')) return taggedAnswer(v2().json, ifNoneMatch)
    if (takes(clause, V2_PROTOBUF_ASKED) || takes(clause, V2_PROTOBUF)) return taggedAnswer(v2().protobuf, ifNoneMatch)
  }
  return textAnswer(406, '')
}

function takes({ type, subtype }: AcceptClause, offered: string): boolean {
  return (type === 'application' || type === '*') && (subtype === offered || subtype === '*')
}

const v3Documents = new Map<string, TaggedDocument>()

function v3DocumentAt(name: string): TaggedDocument | undefined {
  const known = v3Documents.get(name)
  if (known !== undefined) return known
  const groupVersion = V3_DOCUMENTS.get(name)
  if (groupVersion === undefined) return undefined
  const fresh = tagged(Buffer.from(JSON.stringify(v3Document(groupVersion, API_VERSION))), JSON_TYPE)
  v3Documents.set(name, fresh)
  return fresh
}

let v3IndexDocument: TaggedDocument | undefined

function index(): TaggedDocument {
  if (v3IndexDocument === undefined) {
    const tags = new Map<string, string>()
    for (const name of V3_DOCUMENTS.keys()) tags.set(name, v3DocumentAt(name)?.tag.slice(1, -1) ?? '')
    v3IndexDocument = tagged(Buffer.from(JSON.stringify(v3Index(tags))), JSON_TYPE)
  }
  return v3IndexDocument
}

interface V2Documents {
  readonly json: TaggedDocument
  readonly protobuf: TaggedDocument
}

let v2Documents: V2Documents | undefined

function v2(): V2Documents {
  if (v2Documents === undefined) {
    const document = v2Document(API_VERSION)
    const json = tagged(Buffer.from(JSON.stringify(document)), JSON_TYPE)
    v2Documents = { json, protobuf: tagged(encodeV2Document(document), `application/${V2_PROTOBUF}`) }
  }
  return v2Documents
}
