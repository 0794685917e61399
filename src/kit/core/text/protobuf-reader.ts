// Reads the protobuf wire format defensively: input from the network may be truncated or forged (protobuf.dev/programming-guides/encoding).

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2
const FIXED32 = 5
const MAX_VARINT_BYTES = 10
/** Go takes the lower 32 bits of a larger number, and would read another field than this reader. */
const MAX_FIELD_NUMBER = 2 ** 29 - 1

/** Maximum number of fields read in a message and everything nested in it: a field may be two bytes, and costs time however short it is. */
export const MAX_MESSAGE_FIELDS = 100_000

/** A message has more fields than are read. */
export class TooManyFields extends SyntaxError {
  constructor() {
    super(`the message has more than ${MAX_MESSAGE_FIELDS} fields, which is the limit of this server`)
  }
}

/** Iterates over the fields of one message. Everything throws a SyntaxError if the bytes are not a message. */
export class ProtobufReader {
  /** Number of the field that `next` found. */
  number = 0
  /** Where that field begins in the message: its tag. */
  start = 0
  readonly #message: Buffer
  /** Number of fields read, here and in nested messages. */
  readonly #read: { fields: number; readonly most: number }
  /** Start of the next field, or number. */
  #at = 0
  #isVarint = false
  /** The content of the field is [from, at). */
  #from = 0

  /**
   * @param around reader of the enclosing message. Default: none
   * @param mostFields of a message without one, and of everything that is read in it
   */
  constructor(message: Buffer, around?: ProtobufReader, mostFields: number = MAX_MESSAGE_FIELDS) {
    this.#message = message
    this.#read = around === undefined ? { fields: 0, most: mostFields } : around.#read
  }

  /** Index of its content. */
  get contentStart(): number {
    return this.#from
  }

  /** Index behind the field. */
  get end(): number {
    return this.#at
  }

  /** bool, int32 or int64. */
  get isNumber(): boolean {
    return this.#isVarint
  }

  /** Whether there is another field. */
  next(): boolean {
    if (this.#at >= this.#message.length) return false
    if (++this.#read.fields > this.#read.most) throw new TooManyFields()
    this.start = this.#at
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

  /** A string, bytes, or an embedded message. */
  bytes(): Buffer {
    if (this.#isVarint) throw malformed('a number where bytes belong')
    return this.#message.subarray(this.#from, this.#at)
  }

  /** @throws {SyntaxError} also if it is not UTF-8 */
  text(): string {
    if (this.#isVarint) throw malformed('a number where a text belongs')
    const text = this.#message.toString('utf8', this.#from, this.#at)
    if (text.includes('�') && !Buffer.from(text).equals(this.bytes())) throw malformed('a text is not UTF-8')
    return text
  }

  /** bool, int32 or int64; values beyond a number's precision are rounded. */
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

  /** Exact where it matters: valid tags and lengths are small. */
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
