// The manifest by which Krew installs `kubectl portcullis-login`, an archive for each platform.
// Format: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/

import { stringify } from 'yaml'
import type { Platform } from './executable.ts'

export interface LoginArchive {
  readonly platform: Platform
  /** Its file name. */
  readonly name: string
  readonly sha256: string
  /** The executable in it. */
  readonly program: string
}

/** @param uri https://... of the folder from which users download the archives */
export function loginManifest(version: string, uri: string, archives: readonly LoginArchive[]): string {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    // Krew wants the file to be called by it, and calls the program kubectl-portcullis_login.
    metadata: { name: 'portcullis-login' },
    spec: {
      version: `v${version}`,
      shortDescription: 'Log in to clusters behind a Portcullis gateway',
      description:
        'Logs in at an OpenID provider, in the browser or with a code for another device, and gives kubectl and other\n' +
        'clients the token: a credential plugin (client.authentication.k8s.io/v1).\n',
      caveats: 'In the exec section of a kubeconfig the command is kubectl-portcullis_login.\n',
      platforms: archives.map(({ platform: { os, arch }, name, sha256, program }) => ({
        selector: { matchLabels: { os, arch } },
        uri: `${uri.replace(/\/$/, '')}/${name}`,
        sha256,
        bin: program,
      })),
    },
  })
}
