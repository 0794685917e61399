// Certificate and token of the health or admin listener, from files named by settings: read before it opens, and again whenever they change.

import type { ServingPair } from '../../gateway/io/listener/tls-contexts.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { ReloadedFiles } from '../config/reloaded-files.ts'
import { readTokenFile } from './bearer-token.ts'
import type { OwnCertificate } from './own-certificates.ts'
import { type NamedFile, readPairFiles } from './serving-pair.ts'

interface PortFilesOptions {
  /** The certificate's name among those of the process. */
  readonly name: OwnCertificate['name']
  /** File '' = no TLS. */
  readonly cert: NamedFile
  readonly key: NamedFile
  /** File '' = no token. */
  readonly token: NamedFile
  readonly log: Logger
}

export class PortFiles {
  readonly #options: PortFilesOptions
  readonly #reloaded: ReloadedFiles[] = []
  #serving: ServingPair | undefined
  #token = ''

  /** @throws {UserError} if a file is unusable */
  constructor(options: PortFilesOptions) {
    this.#options = options
    const { cert, key, token } = options
    if (cert.file !== '') this.#serving = readPairFiles(cert, key)
    if (token.file !== '') this.#token = readTokenFile(token.flag, token.file)
  }

  /** Current certificate; undefined = no TLS. */
  get serving(): ServingPair | undefined {
    return this.#serving
  }

  /** Current token; '' = none. */
  get token(): string {
    return this.#token
  }

  get certificates(): readonly OwnCertificate[] {
    return this.#serving === undefined ? [] : [{ name: this.#options.name, pem: this.#serving.cert }]
  }

  /** Keyed by file flag: whether its content is in force. */
  get reloads(): ReadonlyMap<string, boolean> {
    return new Map(this.#reloaded.map(({ label, inForce }) => [label, inForce]))
  }

  /** Rereads them when they change. @param onServing called with another certificate */
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

  /** @param read throws if the content is unusable */
  #follow(flag: string, files: readonly string[], read: () => void): void {
    const { log } = this.#options
    const label = flag.slice('--'.length)
    this.#reloaded.push(new ReloadedFiles({ label, what: `the file of ${flag}`, files, read, log }))
  }
}
