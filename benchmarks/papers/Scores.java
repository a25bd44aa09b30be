import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import weka.classifiers.Classifier;
import weka.core.Instance;
import weka.core.Instances;

/**
 * Trains classifiers of Weka on rows of files and scores others, as asked line by line.
 *
 * <p>A line "open file classifier option …" (words apart by tabs) names both; "train row:label …"
 * trains anew; "score row …" answers with the probabilities of label 1, in a line.
 */
class Scores {
    public static void main(String[] none) throws Exception {
        Instances rows = null;
        String[] words = null;
        Classifier trained = null;
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            if (line.startsWith("open\t")) {
                words = line.split("\t");
                rows = new Instances(new FileReader(words[1]));
                rows.setClassIndex(rows.numAttributes() - 1);
            } else if (line.startsWith("train ")) {
                String[] options = Arrays.copyOfRange(words, 3, words.length);
                trained = Classifier.forName(words[2], options);
                trained.buildClassifier(bag(rows, line.split(" ")));
            } else {
                String[] parts = line.split(" ");
                StringBuilder answer = new StringBuilder();
                for (int i = 1; i < parts.length; i++) {
                    Instance row = rows.instance(Integer.parseInt(parts[i]));
                    answer.append(trained.distributionForInstance(row)[1]).append(' ');
                }
                System.out.println(answer);
            }
        }
    }

    private static Instances bag(Instances rows, String[] parts) {
        Instances bag = new Instances(rows, parts.length);
        for (int i = 1; i < parts.length; i++) {
            String[] pair = parts[i].split(":");
            bag.add(rows.instance(Integer.parseInt(pair[0])));
            bag.lastInstance().setClassValue(Double.parseDouble(pair[1]));
        }
        return bag;
    }
}
