// A client of TLS 1.3 written by hand (RFC 8446), as far as an attack needs it: x25519, TLS_AES_128_GCM_SHA256, no certificate, and nothing
// that the server proves is looked at. It sends what no TLS library sends.

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto'
import { EXTENSIONS, type Extension, madeClientHello, record, vector } from './client-hello.ts'

const CHANGE_CIPHER_SPEC = 20
const HANDSHAKE = 22
export const APPLICATION_DATA = 23
const SERVER_HELLO = 2
const FINISHED = 20
const TAG_BYTES = 16
const RECORD_HEADER = 5
const MESSAGE_HEADER = 4
/** DER of an x25519 key in front of its 32 octets (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex')
const EMPTY_HASH = createHash('sha256').digest()

export class HostileTls13 {
  readonly #privateKey: KeyObject
  /** The messages of the handshake, without record headers. */
  readonly #transcript: Buffer[] = []
  readonly hello: Buffer
  #rest: Buffer = Buffer.alloc(0)
  #messages: Buffer = Buffer.alloc(0)
  #handshakeSecret: Buffer = Buffer.alloc(0)
  #clientSecret: Buffer = Buffer.alloc(0)
  #serverSecret: Buffer = Buffer.alloc(0)
  #received: Keys | undefined
  #sending: Keys | undefined
  #isReady = false

  /** @param extensions beside those that are needed */
  constructor(serverName: string, protocol: 'h2' | 'http/1.1' = 'h2', extensions: readonly Extension[] = []) {
    const { privateKey, publicKey } = generateKeyPairSync('x25519')
    this.#privateKey = privateKey
    this.hello = madeClientHello([
      EXTENSIONS.serverName(serverName),
      EXTENSIONS.alpn(protocol),
      EXTENSIONS.keyShare(shareOf(publicKey)),
      ...extensions,
    ])
    this.#transcript.push(this.hello.subarray(RECORD_HEADER))
  }

  /** Whether the handshake is complete, on this side. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Takes what has come during the handshake; what is to be sent then, if anything. */
  receive(bytes: Buffer): Buffer | undefined {
    if (this.#isReady) return undefined
    this.#rest = Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= RECORD_HEADER) {
      const end = RECORD_HEADER + this.#rest.readUInt16BE(3)
      if (this.#rest.length < end) return undefined
      const one = this.#rest.subarray(0, end)
      this.#rest = this.#rest.subarray(end)
      this.#record(one)
      const answer = this.#read()
      if (answer !== undefined) return answer
    }
    return undefined
  }

  /** A record of these octets with the keys of now. */
  protect(type: number, content: Buffer): Buffer {
    if (this.#sending === undefined) throw new Error('no keys yet')
    return this.#sending.protect(type, content)
  }

  /** A KeyUpdate; what follows has the next keys. @param asks for one in return */
  keyUpdate(asks: boolean): Buffer {
    const update = this.protect(HANDSHAKE, Buffer.from([24, 0, 0, 1, Number(asks)]))
    this.#clientSecret = expandLabel(this.#clientSecret, 'traffic upd', Buffer.alloc(0), 32)
    this.#sending = new Keys(this.#clientSecret)
    return update
  }

  #record(bytes: Buffer): void {
    const type = bytes[0] ?? 0
    if (type === CHANGE_CIPHER_SPEC) return
    const content =
      type === APPLICATION_DATA && this.#received !== undefined
        ? this.#received.open(bytes)
        : bytes.subarray(RECORD_HEADER)
    this.#messages = Buffer.concat([this.#messages, content])
  }

  #read(): Buffer | undefined {
    while (this.#messages.length >= MESSAGE_HEADER) {
      const end = MESSAGE_HEADER + this.#messages.readUIntBE(1, 3)
      if (this.#messages.length < end) return undefined
      const message = this.#messages.subarray(0, end)
      this.#messages = this.#messages.subarray(end)
      this.#transcript.push(message)
      if (message[0] === SERVER_HELLO) this.#serverHello(message)
      if (message[0] === FINISHED) return this.#finish()
    }
    return undefined
  }

  #serverHello(message: Buffer): void {
    // Header, version, random; the echoed session id, the suite, no compression.
    let at = MESSAGE_HEADER + 2 + 32
    at += 1 + (message[at] ?? 0) + 2 + 1 + 2
    let share: Buffer | undefined
    while (at + 4 <= message.length) {
      const length = message.readUInt16BE(at + 2)
      if (message.readUInt16BE(at) === 51) share = message.subarray(at + 8, at + 4 + length)
      at += 4 + length
    }
    if (share?.length !== 32) throw new Error('no key of the server')
    const publicKey = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, share]), format: 'der', type: 'spki' })
    const shared = diffieHellman({ privateKey: this.#privateKey, publicKey })
    const early = extract(Buffer.alloc(32), Buffer.alloc(32))
    this.#handshakeSecret = extract(expandLabel(early, 'derived', EMPTY_HASH, 32), shared)
    this.#clientSecret = expandLabel(this.#handshakeSecret, 'c hs traffic', this.#hash(), 32)
    this.#serverSecret = expandLabel(this.#handshakeSecret, 's hs traffic', this.#hash(), 32)
    this.#received = new Keys(this.#serverSecret)
  }

  /** An empty certificate, because one is asked for, and Finished. */
  #finish(): Buffer {
    const handshakeKeys = new Keys(this.#clientSecret)
    const master = extract(expandLabel(this.#handshakeSecret, 'derived', EMPTY_HASH, 32), Buffer.alloc(32))
    const application = expandLabel(master, 'c ap traffic', this.#hash(), 32)
    const certificate = Buffer.from([11, 0, 0, 4, 0, 0, 0, 0])
    this.#transcript.push(certificate)
    const key = expandLabel(this.#clientSecret, 'finished', Buffer.alloc(0), 32)
    const verify = createHmac('sha256', key).update(this.#hash()).digest()
    const finished = Buffer.concat([Buffer.from([FINISHED, 0, 0, verify.length]), verify])
    const flight = handshakeKeys.protect(HANDSHAKE, Buffer.concat([certificate, finished]))
    this.#clientSecret = application
    this.#sending = new Keys(application)
    this.#isReady = true
    return Buffer.concat([record(CHANGE_CIPHER_SPEC, Buffer.from([1])), flight])
  }

  #hash(): Buffer {
    return createHash('sha256').update(Buffer.concat(this.#transcript)).digest()
  }
}

/** An extension with a random key. */
export function keyShare(): Extension {
  return EXTENSIONS.keyShare(shareOf(generateKeyPairSync('x25519').publicKey))
}

function shareOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length)
}

/** The keys of one direction, until the next KeyUpdate. */
class Keys {
  readonly #key: Buffer
  readonly #iv: Buffer
  #sequence = 0

  constructor(secret: Buffer) {
    this.#key = expandLabel(secret, 'key', Buffer.alloc(0), 16)
    this.#iv = expandLabel(secret, 'iv', Buffer.alloc(0), 12)
  }

  protect(type: number, content: Buffer): Buffer {
    const length = content.length + 1 + TAG_BYTES
    const header = Buffer.from([APPLICATION_DATA, 3, 3, length >> 8, length & 255])
    const cipher = createCipheriv('aes-128-gcm', this.#key, this.#nonce()).setAAD(header)
    const sealed = [cipher.update(content), cipher.update(Buffer.from([type])), cipher.final()]
    return Buffer.concat([header, ...sealed, cipher.getAuthTag()])
  }

  /** Without the type, and the padding in front of it. */
  open(bytes: Buffer): Buffer {
    const end = bytes.length - TAG_BYTES
    const decipher = createDecipheriv('aes-128-gcm', this.#key, this.#nonce())
      .setAAD(bytes.subarray(0, RECORD_HEADER))
      .setAuthTag(bytes.subarray(end))
    const plain = Buffer.concat([decipher.update(bytes.subarray(RECORD_HEADER, end)), decipher.final()])
    let last = plain.length - 1
    while (last > 0 && plain[last] === 0) last--
    return plain.subarray(0, last)
  }

  #nonce(): Buffer {
    const nonce = Buffer.from(this.#iv)
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#sequence++) >>> 0, 8)
    return nonce
  }
}

function extract(salt: Buffer, secret: Buffer): Buffer {
  return createHmac('sha256', salt).update(secret).digest()
}

/** HKDF-Expand-Label (section 7.1) of at most one block. */
function expandLabel(secret: Buffer, label: string, context: Buffer, length: number): Buffer {
  const size = Buffer.from([length >> 8, length & 255])
  const info = Buffer.concat([size, vector(1, Buffer.from(`tls13 ${label}`)), vector(1, context), Buffer.from([1])])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}
