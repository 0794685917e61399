// `npm run -s krew -- --archive FILE --uri URL`: prints the manifest by which Krew, the plugin manager of kubectl, installs the package that
// `npm pack` has built and that can be downloaded from URL.
// Format: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'

const ROOT = join(import.meta.dirname, '..')
const USAGE = 'usage: npm run -s krew -- --archive FILE --uri URL [--homepage URL]'

interface Package {
  readonly version: string
  readonly engines: { readonly node: string }
}

try {
  process.stdout.write(manifest())
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`)
  process.exitCode = 1
}

/** @throws {Error} with one line for the release manager */
function manifest(): string {
  const options = { archive: { type: 'string' }, uri: { type: 'string' }, homepage: { type: 'string' } } as const
  const { archive = '', uri = '', homepage } = parseArgs({ options }).values
  if (archive === '') throw new Error('--archive is missing: the file that `npm pack` has built')
  // Krew downloads by https only.
  if (!URL.canParse(uri) || new URL(uri).protocol !== 'https:') {
    throw new Error(`--uri ${JSON.stringify(uri)} is not an https:// URL: where users download ${archive} from`)
  }
  const { version, engines }: Package = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const sha256 = createHash('sha256').update(readFileSync(archive)).digest('hex')
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    // Krew wants the file to be called by it: portcullis.yaml.
    metadata: { name: 'portcullis' },
    spec: {
      version: `v${version}`,
      ...(homepage !== undefined && { homepage }),
      shortDescription: 'Operate the Portcullis API gateway',
      description:
        'Freezes clusters during incidents and brings them back, says why a pod may not be deleted and which pods a\n' +
        'scale-down takes, revokes credentials, explains what the gateway does with a request, and checks\n' +
        'configuration. The same program runs the gateway: kubectl portcullis serve.\n',
      caveats: `Needs Node.js ${engines.node} on PATH.\n`,
      platforms: [
        {
          selector: { matchLabels: { os: 'linux' } },
          uri,
          sha256,
          // npm packs everything into one folder of this name.
          files: [{ from: 'package/*', to: '.' }],
          bin: 'bin/portcullis',
        },
      ],
    },
  })
}
