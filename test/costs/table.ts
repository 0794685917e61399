// Every parser and check whose costs are measured, by the room of its inputs. A new file of a room is named here.

import { PARSERS as OF_DELETION } from './bodies/deletion.ts'
import { PARSERS as OF_JSON } from './bodies/json.ts'
import { PARSERS as OF_PROTOBUF } from './bodies/protobuf.ts'
import { PARSERS as OF_REVIEWS } from './bodies/reviews.ts'
import { PARSERS as OF_YAML } from './bodies/yaml.ts'
import { PARSERS as OF_FILES } from './files/files.ts'
import { PARSERS as OF_CHECKS } from './objects/checks.ts'
import { PARSERS as OF_MANAGED_FIELDS } from './objects/managed-fields.ts'
import { PARSERS as OF_PATCHES } from './objects/patches.ts'
import type { Parser } from './parser.ts'
import { PARSERS as OF_ADMIN } from './requests/admin.ts'
import { PARSERS as OF_CONNECTION } from './requests/connection.ts'
import { PARSERS as OF_CONTROL_REQUEST } from './requests/control-request.ts'
import { PARSERS as OF_DECISIONS } from './requests/decisions.ts'
import { PARSERS as OF_HEAD } from './requests/head.ts'
import { PARSERS as OF_HTTP1 } from './requests/http1.ts'
import { PARSERS as OF_IDENTITY } from './requests/identity.ts'
import { PARSERS as OF_REQUEST_TARGET } from './requests/request-target.ts'
import { PARSERS as OF_SELECTORS } from './requests/selectors.ts'
import { PARSERS as OF_TEXTS } from './requests/texts.ts'
import { PARSERS as OF_WEBSOCKETS } from './requests/websocket.ts'
import { PARSERS as OF_ANSWERS } from './upstream/answers.ts'
import { PARSERS as OF_CACHED_OBJECTS } from './upstream/cached-objects.ts'
import { PARSERS as OF_UPSTREAM_CONNECTION } from './upstream/connection.ts'
import { PARSERS as OF_DOCUMENTS } from './upstream/documents.ts'
import { PARSERS as OF_FEDERATED_READS } from './upstream/federated-reads.ts'
import { PARSERS as OF_HTTP1_ANSWERS } from './upstream/http1.ts'
import { PARSERS as OF_SESSIONS } from './upstream/sessions.ts'

export const REQUESTS: readonly Parser[] = [
  ...OF_ADMIN,
  ...OF_CONNECTION,
  ...OF_CONTROL_REQUEST,
  ...OF_DECISIONS,
  ...OF_HEAD,
  ...OF_HTTP1,
  ...OF_IDENTITY,
  ...OF_REQUEST_TARGET,
  ...OF_SELECTORS,
  ...OF_TEXTS,
  ...OF_WEBSOCKETS,
]

export const BODIES: readonly Parser[] = [...OF_DELETION, ...OF_JSON, ...OF_PROTOBUF, ...OF_REVIEWS, ...OF_YAML]

export const OBJECTS: readonly Parser[] = [...OF_CHECKS, ...OF_MANAGED_FIELDS, ...OF_PATCHES]

export const UPSTREAM: readonly Parser[] = [
  ...OF_ANSWERS,
  ...OF_CACHED_OBJECTS,
  ...OF_FEDERATED_READS,
  ...OF_UPSTREAM_CONNECTION,
  ...OF_HTTP1_ANSWERS,
  ...OF_DOCUMENTS,
  ...OF_SESSIONS,
]

export const FILES: readonly Parser[] = [...OF_FILES]

export const PARSERS: readonly Parser[] = [...REQUESTS, ...BODIES, ...OBJECTS, ...UPSTREAM, ...FILES]
