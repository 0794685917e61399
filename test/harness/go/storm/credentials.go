// Certificates of the clients, issued here: thousands of RSA keys would take minutes elsewhere.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// certificatesOf issues o.certificates of them; number i is user storm-i.
func certificatesOf(o *options) ([]tls.Certificate, error) {
	ca, err := tls.LoadX509KeyPair(o.caCert, o.caKey)
	if err != nil {
		return nil, err
	}
	issuer, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		return nil, err
	}
	certificates := make([]tls.Certificate, o.certificates)
	for i := range certificates {
		key, err := newKey(o.rsa)
		if err != nil {
			return nil, err
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(1 + o.first + i)),
			Subject:      pkix.Name{CommonName: fmt.Sprintf("storm-%d", i), Organization: []string{"storm"}},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(24 * time.Hour),
			KeyUsage:     x509.KeyUsageDigitalSignature,
			ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), ca.PrivateKey)
		if err != nil {
			return nil, err
		}
		certificates[i] = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	return certificates, nil
}

func newKey(useRSA bool) (crypto.Signer, error) {
	if useRSA {
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
