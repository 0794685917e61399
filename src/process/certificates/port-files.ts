// Certificate and token of a listener for health or administration, from the files that settings name: read before it opens, and again
// whenever they change.

import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { readTokenFile } from '../access/bearer-token.ts'
import { ReloadedFiles } from '../config/reloaded-files.ts'
import type { OwnCertificate } from './own-certificates.ts'
import { type NamedFile, readPairFiles } from './serving-pair.ts'

export interface PortFilesOptions {
  /** Of the certificate, among those of the process. */
  readonly name: OwnCertificate['name']
  /** A file of '' = no TLS. */
  readonly cert: NamedFile
  readonly key: NamedFile
  /** A file of '' = there is no token. */
  readonly token: NamedFile
  readonly log: Logger
}

export class PortFiles {
  readonly #options: PortFilesOptions
  readonly #reloaded: ReloadedFiles[] = []
  #serving: ServingPair | undefined
  #token = ''

  /** @throws {UserError} when a file cannot be used */
  constructor(options: PortFilesOptions) {
    this.#options = options
    const { cert, key, token } = options
    if (cert.file !== '') this.#serving = readPairFiles(cert, key)
    if (token.file !== '') this.#token = readTokenFile(token.flag, token.file)
  }

  /** As it is now; undefined = no TLS. */
  get serving(): ServingPair | undefined {
    return this.#serving
  }

  /** As it is now; '' = there is none. */
  get token(): string {
    return this.#token
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#serving === undefined ? [] : [{ name: this.#options.name, pem: this.#serving.cert }]
  }

  /** By the flag that names the file: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#reloaded.map(({ label, inForce }) => [label, inForce]))
  }

  /** Reads them again when they change. @param onServing hears of another certificate */
  follow(onServing: (serving: ServingPair) => void): void {
    const { cert, key, token } = this.#options
    if (cert.file !== '') {
      this.#follow(cert.flag, [cert.file, key.file], () => {
        this.#serving = readPairFiles(cert, key)
        onServing(this.#serving)
      })
    }
    if (token.file !== '') {
      this.#follow(token.flag, [token.file], () => {
        this.#token = readTokenFile(token.flag, token.file)
      })
    }
  }

  stop(): void {
    for (const reloaded of this.#reloaded) reloaded.stop()
  }

  /** @param read throws when the content cannot be used */
  #follow(flag: string, files: readonly string[], read: () => void): void {
    const { log } = this.#options
    const label = flag.slice('--'.length)
    this.#reloaded.push(new ReloadedFiles({ label, what: `the file of ${flag}`, files, read, log }))
  }
}
