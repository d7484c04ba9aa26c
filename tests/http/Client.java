/*
 * Java's client: Client URL AUTHORITY VERSION PATH[@FIRST-LAST] ...
 * Asks for all on one connection, and again on a second one; prints a SHA-256 for each.
 */
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

public class Client {
    static SSLContext trusting(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(file)) {
            store.setCertificateEntry(
                "root", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance("PKIX");
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    static void ask(HttpClient client, String base, String job) throws Exception {
        String[] parts = job.split("@");
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + parts[0]));
        if (parts.length > 1)
            request.header("Range", "bytes=" + parts[1]);
        HttpResponse<byte[]> answer =
            client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(answer.body());
        System.out.println(String.format("%064x", new java.math.BigInteger(1, hash)));
    }

    public static void main(String[] args) throws Exception {
        SSLContext context = trusting(args[1]);
        SSLParameters only = new SSLParameters();
        only.setProtocols(new String[] {"TLSv" + args[2]});
        for (int round = 0; round < 2; round++) {
            HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
                .sslContext(context).sslParameters(only).build();
            for (int i = 3; i < args.length; i++)
                ask(client, args[0], args[i]);
        }
    }
}
