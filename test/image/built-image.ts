// The image of the Dockerfile, built on this machine: by buildah, without a daemon, a network or official images. In the place of
// distroless "cc" stands a base of the same Debian packages, as they are installed here.

import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'

const ROOT = resolve(import.meta.dirname, '../..')
/** What Node needs, and what distroless "cc" has beside it. */
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1', 'ca-certificates', 'tzdata']
const NOT_NEEDED = /^\/usr\/share\/(?:doc|man|lintian|locale)\//
/** Since Debian 12 the first is a link to the second; packages still name the first. */
const MERGED = ['bin', 'sbin', 'lib', 'lib64']
const BASE = 'FROM scratch\nCOPY base/ /\n'
const NODE = 'FROM localhost/base\nCOPY node /usr/local/bin/node\nWORKDIR /src/node_modules\n'
export const COMMIT = '0123456789abcdef0123456789abcdef01234567'
export const COMMIT_DATE = '2026-11-22T22:00:00Z'

export interface ImageFactory {
  /** Builds the Dockerfile of the repository. @returns the image's ID, which its layers and its configuration decide */
  build(name: string): string
  /** @returns the folder of an OCI layout, its image tagged `test` */
  push(name: string): string
}

/** @param dir where everything goes, storage included */
export function createImageFactory(dir: string): ImageFactory {
  const context = join(dir, 'context')
  copyPackages(join(context, 'base'))
  copyFileSync(realpathSync(process.execPath), join(context, 'node'))
  writeFileSync(join(dir, 'base.Dockerfile'), BASE)
  writeFileSync(join(dir, 'node.Dockerfile'), NODE)
  const buildah = (...args: readonly string[]): void => {
    const storage = ['--root', join(dir, 'storage'), '--runroot', join(dir, 'run'), '--storage-driver', 'vfs']
    run('buildah', [...storage, ...args])
  }
  const bud = (...args: readonly string[]): void =>
    buildah('bud', '--isolation', 'chroot', '--format', 'oci', '--timestamp', '1700000000', '--quiet', ...args)
  for (const name of ['base', 'node']) bud('-f', join(dir, `${name}.Dockerfile`), '-t', `localhost/${name}`, context)
  return {
    build(name) {
      const image = `localhost/${name}`
      const buildArgs = {
        NODE: 'localhost/node',
        BASE: 'localhost/base',
        DEPENDENCIES: 'localhost/node',
        PORTCULLIS_COMMIT: COMMIT,
        PORTCULLIS_COMMIT_DATE: COMMIT_DATE,
      }
      const flags = Object.entries(buildArgs).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])
      const packages = `${realpathSync(join(ROOT, 'node_modules'))}:/src/node_modules:ro`
      const idFile = join(dir, `${name}.id`)
      bud(...flags, '--volume', packages, '--iidfile', idFile, '-t', image, ROOT)
      return readFileSync(idFile, 'utf8')
    },
    push(name) {
      const layout = join(dir, `${name}-layout`)
      buildah('push', '--quiet', '--disable-compression', `localhost/${name}`, `oci:${layout}:test`)
      return layout
    },
  }
}

export function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? ''}${stdout}${stderr.slice(-3000)}`)
  return stdout
}

/** The files of `PACKAGES`, and the user that distroless calls nonroot. */
function copyPackages(root: string): void {
  for (const name of MERGED) {
    mkdirSync(join(root, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(root, name))
  }
  const listed = run('dpkg', ['-L', ...PACKAGES]).split('\n')
  for (const path of [...listed, '/etc/ssl/certs/ca-certificates.crt']) {
    if (!path.startsWith('/') || NOT_NEEDED.test(path) || !existsSync(path)) continue
    const target = join(root, path.replace(/^\/(bin|sbin|lib|lib64)\//, '/usr/$1/'))
    const stat = lstatSync(path)
    mkdirSync(dirname(target), { recursive: true })
    if (stat.isSymbolicLink()) {
      if (!MERGED.includes(path.slice(1))) symlinkSync(readlinkSync(path), target)
    } else if (stat.isFile()) copyFileSync(path, target)
  }
  mkdirSync(join(root, 'var/lib'), { recursive: true })
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
  )
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n')
  if (readdirSync(join(root, 'usr/bin')).includes('sh')) throw new Error('the base has a shell')
}
