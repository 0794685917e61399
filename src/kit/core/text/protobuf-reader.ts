// The wire format of protocol buffers, read defensively: input from the network may be truncated or forged
// (protobuf.dev/programming-guides/encoding).

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const FIXED32 = 5
const MAX_VARINT_BYTES = 10
/** Go takes the lower 32 bits of a larger number, and would read another field than this reader. */
const MAX_FIELD_NUMBER = 2 ** 29 - 1

/** Fields of a message and of all inside it that are read: a field may be two bytes, and takes time however short it is. */
export const MAX_FIELDS = 100_000

/** Of a message with more fields than are read. */
export class TooManyFields extends SyntaxError {
  constructor() {
    super(`the message has more than ${MAX_FIELDS} fields, which is the limit of this server`)
  }
}

/** The fields of one message, one after the other. Everything throws a SyntaxError when the bytes are not a message. */
export class ProtobufReader {
  /** Of the field that `next` found. */
  number = 0
  readonly #message: Buffer
  /** Fields that were read, here and in what is inside. */
  readonly #read: { fields: number }
  /** Where the next field, or number, begins. */
  #at = 0
  #isVarint = false
  /** The content of the field: from here to #at. */
  #from = 0

  /** @param around of the message that this one is part of. Default: none */
  constructor(message: Buffer, around?: ProtobufReader) {
    this.#message = message
    this.#read = around === undefined ? { fields: 0 } : around.#read
  }

  /** Whether there is another field. */
  next(): boolean {
    if (this.#at >= this.#message.length) return false
    if (++this.#read.fields > MAX_FIELDS) throw new TooManyFields()
    const tag = this.#varint()
    this.number = Math.floor(tag / 8)
    if (this.number < 1 || this.number > MAX_FIELD_NUMBER) throw malformed(`field number ${this.number}`)
    const wireType = tag - this.number * 8
    this.#isVarint = wireType === VARINT
    if (this.#isVarint) {
      this.#from = this.#at
      this.#varint()
      return true
    }
    const length = this.#length(wireType)
    this.#from = this.#at
    this.#at += length
    if (this.#at > this.#message.length) throw malformed('a length goes beyond the end')
    return true
  }

  /** A text, bytes, or an embedded message. */
  bytes(): Buffer {
    if (this.#isVarint) throw malformed('a number where bytes belong')
    return this.#message.subarray(this.#from, this.#at)
  }

  /** @throws {SyntaxError} also when it is not UTF-8 */
  text(): string {
    if (this.#isVarint) throw malformed('a number where a text belongs')
    const text = this.#message.toString('utf8', this.#from, this.#at)
    if (text.includes('�') && !Buffer.from(text).equals(this.bytes())) throw malformed('a text is not UTF-8')
    return text
  }

  /** bool, int32 or int64; of what is greater than a number can say, the nearest. */
  integer(): number {
    if (!this.#isVarint) throw malformed('bytes where a number belongs')
    let value = 0n
    for (let at = this.#at - 1; at >= this.#from; at--) value = (value << 7n) | BigInt((this.#message[at] ?? 0) & 0x7f)
    return Number(BigInt.asIntN(64, value))
  }

  #length(wireType: number): number {
    switch (wireType) {
      case LENGTH_DELIMITED:
        return this.#varint()
      case FIXED64:
        return 8
      case FIXED32:
        return 4
      default:
        throw malformed(`wire type ${wireType}`)
    }
  }

  /** Exact where it matters: tags and lengths that are possible are small. */
  #varint(): number {
    let value = 0
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      const byte = this.#message[this.#at]
      if (byte === undefined) throw malformed('a number goes beyond the end')
      this.#at++
      value += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) return value
    }
    throw malformed('a number is longer than ten bytes')
  }
}

function malformed(what: string): SyntaxError {
  return new SyntaxError(what)
}
