package localcluster

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// contextName is also the name of the cluster and the user in the kubeconfigs.
const contextName = "paddock-local"

// WriteKubeconfig writes config's server and credentials (client certificate or token) to a
// kubeconfig, for kubectl and other programs.
func WriteKubeconfig(path string, config *rest.Config) error {
	kubeconfig := api.NewConfig()
	kubeconfig.CurrentContext = contextName
	kubeconfig.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: contextName}
	kubeconfig.Clusters[contextName] = &api.Cluster{
		Server:                   config.Host,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[contextName] = &api.AuthInfo{
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		TokenFile:             config.BearerTokenFile,
	}
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
