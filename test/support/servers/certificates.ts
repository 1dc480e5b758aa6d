/** A certificate authority of the test's own, and a certificate for a server on this machine. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificates {
  /** PEM text: what a client has to trust. */
  readonly ca: string
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
}

/** For `localhost` and 127.0.0.1, good for a day. */
export function makeCertificates(folder: string): Certificates {
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    ...['req', '-x509', ...newKey, '-days', '1', '-subj', '/CN=test authority'],
    ...['-keyout', at('ca.key'), '-out', at('ca.crt')],
  )
  openssl('req', ...newKey, '-subj', '/CN=localhost', '-keyout', at('server.key'), '-out', at('server.csr'))
  writeFileSync(at('server.ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
  openssl(
    ...['x509', '-req', '-in', at('server.csr'), '-days', '1', '-extfile', at('server.ext')],
    ...['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-out', at('server.crt')],
  )
  return {
    ca: readFileSync(at('ca.crt'), 'utf8'),
    caFile: at('ca.crt'),
    certFile: at('server.crt'),
    keyFile: at('server.key'),
  }
}
