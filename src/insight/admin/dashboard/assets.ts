// The dashboard's files. Their names contain a content hash, so that browsers cache them indefinitely; the page that names them is revalidated each
// time, which costs nothing if unchanged.

import { type AdminRoute, PLAIN_TEXT } from '../../../admin/io/server/route.ts'
import type { AnyResponse, PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import { contentHash } from '../../../gateway/io/sources/files/content-hash.ts'

/** Keyed by name. Rejects if they cannot be built; the next call tries again. */
export type DashboardFiles = () => Promise<ReadonlyMap<string, Uint8Array>>

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}
const A_YEAR = 'public, max-age=31536000, immutable'
const INDEX = 'index.html'

/** The page, for users who may see its data; and its files, which are the same everywhere and reveal nothing about this installation. */
export function assetRoutes(files: DashboardFiles): readonly AdminRoute[] {
  const asset = async ({ path }: PlainRequest): Promise<AnyResponse> => {
    const name = path.slice('/assets/'.length)
    const bytes = name.endsWith('.html') ? undefined : (await files()).get(name)
    if (bytes === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'no such file\n' }
    return { code: 200, contentType: typeOf(name), body: bytes, headers: { 'cache-control': A_YEAR } }
  }
  const index = async (request: PlainRequest): Promise<AnyResponse> => {
    const bytes = (await files()).get(INDEX)
    if (bytes === undefined) return { code: 404, contentType: PLAIN_TEXT, body: 'this build has no dashboard\n' }
    return withTag(request, { code: 200, contentType: typeOf(INDEX), body: bytes })
  }
  return [
    { path: '/', method: 'GET', access: 'view', answer: index },
    { path: '/assets/*', method: 'GET', access: 'health', answer: asset },
  ]
}

function typeOf(name: string): string {
  return TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
}

/** The response, or 304 if the client has it. */
export function withTag({ header }: PlainRequest, response: PlainResponse): PlainResponse {
  const etag = `"${contentHash(Buffer.from(response.body)).slice(0, 32)}"`
  const headers = { ...response.headers, etag }
  const has = header('if-none-match')
    .split(',')
    .some((tag) => tag.trim().replace(/^W\//, '') === etag)
  return has ? { ...response, code: 304, body: '', headers } : { ...response, headers }
}
